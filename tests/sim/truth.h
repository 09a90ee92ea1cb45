/* Ground truth: what the program asked for and what the device did. Every function but
 * sim_truth_write() and sim_truth_active() is called with sim_lock() held. */
#ifndef SIM_TRUTH_H
#define SIM_TRUTH_H

#include "device.h"
#include "sim.h"

#include <stdio.h>

bool sim_truth_active(void); /* counting now, not outside a range */
void sim_truth_list(struct sim_api *api);
uint32_t sim_truth_name(const char *name); /* id; the text is copied */
const char *sim_truth_name_text(uint32_t id);
bool sim_truth_ignores(const char *name); /* a kernel of a recorder under test */

/* at submission, for work that will be executed */
void sim_truth_kernel(uint32_t name);
void sim_truth_copy(enum sim_direction direction, bool pageable, uint64_t bytes);
void sim_truth_memset(uint64_t bytes);
/* when the device has done it */
void sim_truth_op(const struct sim_op *op);

void sim_truth_allocator(uint64_t allocated, uint64_t reserved);
void sim_truth_nccl(const char *op, uint64_t bytes);
void sim_truth_forget(void); /* in a forked child */

/* truth_peers.c: what an operation does together with other processes; `latest` is when the last of
 * them started */
void sim_truth_meetings(const struct sim_op *op);
void sim_truth_forget_meetings(void);
void sim_truth_put_meetings(FILE *f);

#endif
