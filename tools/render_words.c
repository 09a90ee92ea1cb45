/* Words for what the analysis numbers. */
#include "render.h"

#include "analysis/steps.h"

#include <stdio.h>

const char *word_gpu(char b[WORD_GPU_SIZE], int index)
{
    snprintf(b, WORD_GPU_SIZE, index < 0 ? "GPU ?" : "GPU %d", index);
    return b;
}

const char *word_class_key(unsigned class)
{
    static const char *const keys[] = {
#define X(id, key, text) #key,
        GWA_IDLE_CLASSES(X)
#undef X
    };
    return class < GWA_IDLE_CLASS_COUNT ? keys[class] : "unknown";
}

const char *word_class(unsigned class)
{
    static char names[GWA_IDLE_CLASS_COUNT][16] = {
#define X(id, key, text) #key,
        GWA_IDLE_CLASSES(X)
#undef X
    };
    if (class >= GWA_IDLE_CLASS_COUNT)
        return "unknown";
    for (char *c = names[class]; *c; c++)
        if (*c == '_')
            *c = '-';
    return names[class];
}

const char *word_class_text(unsigned class)
{
    static const char *const texts[] = {
#define X(id, key, text) text,
        GWA_IDLE_CLASSES(X)
#undef X
    };
    return class < GWA_IDLE_CLASS_COUNT ? texts[class] : "unknown";
}

const char *word_phase(unsigned phase)
{
    static const char *const texts[] = {
#define X(id, text) text,
        GWA_PHASES(X)
#undef X
    };
    return phase < GWA_PHASE_COUNT ? texts[phase] : "unknown";
}

const char *word_confidence(unsigned confidence)
{
    return confidence == GWA_HIGH     ? "high"
           : confidence == GWA_MEDIUM ? "medium"
           : confidence == GWA_LOW    ? "low"
                                      : "unknown";
}
