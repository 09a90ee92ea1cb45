/* Between the files that write the report as JSON. */
#ifndef RENDER_JSON_H
#define RENDER_JSON_H

#include "render.h"

json_t *render_count(uint64_t n);
json_t *render_count_or_null(int64_t n); /* null below 0 */
json_t *render_times(const struct gwa_times *t);
void render_set(json_t *object, const char *key, json_t *value); /* steals the value */

json_t *render_device_json(const struct gwa_device *d);
json_t *render_sites_json(const struct gwa_device *d); /* null where idle is not attributed */
json_t *render_drains_json(const struct gwa_device *d);
json_t *render_steps_json(const struct gwa_step_summary *s);
/* Puts verdict, findings and what_if into `process`. */
void render_findings_json(json_t *process, const struct gwa_process *p);

#endif
