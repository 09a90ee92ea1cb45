/* gpuwait info --events: the records as they are. */
#ifndef INFO_EVENTS_H
#define INFO_EVENTS_H

#include <gpuwait/trace.h>

/* A load_each: arg is a bool, whether lines are JSON objects. */
int info_events(struct gwt_trace *trace, const char *path, void *json);

#endif
