/* What the options of `gpuwait run` take: the third column of lib/trace/env.def. */
#ifndef RUN_OPTION_H
#define RUN_OPTION_H

#include <stdbool.h>

bool run_option_takes(const char *takes, const char *value);
/* post: malloc'ed, in words: "auto, off or 0 to 20 percent". */
char *run_option_text(const char *takes);

#endif
