/* The memory-ordering vocabulary of the preload; nothing else here spells an atomic.
 *
 * A release store publishes every earlier write of its thread to whoever reads the
 * value with an acquire load. Each use names its partner. */
#ifndef GW_ATOMICS_H
#define GW_ATOMICS_H

#define gw_load_relaxed(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define gw_load_acquire(p)     __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define gw_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define gw_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
/* The same for a float. */
#define gw_load_float(p)                                                                           \
    ({                                                                                             \
        float value_;                                                                              \
        __atomic_load((p), &value_, __ATOMIC_RELAXED);                                             \
        value_;                                                                                    \
    })
#define gw_store_float(p, v)                                                                       \
    ({                                                                                             \
        float value_ = (v);                                                                        \
        __atomic_store((p), &value_, __ATOMIC_RELAXED);                                            \
    })
#define gw_add_relaxed(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define gw_sub_relaxed(p, v) __atomic_fetch_sub((p), (v), __ATOMIC_RELAXED)
/* Sequentially consistent: for the capture gate, where a store must be visible
 * before a later load of another variable (Dekker's pattern). */
#define gw_add_seq(p, v) __atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST)
#define gw_sub_seq(p, v) __atomic_fetch_sub((p), (v), __ATOMIC_SEQ_CST)
#define gw_cas(p, old, new)                                                                        \
    __atomic_compare_exchange_n((p), (old), (new), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
#define gw_exchange(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
/* Loads before it stay before loads after it; partner: the writer's release stores. */
#define gw_fence_acquire() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define gw_fence_release() __atomic_thread_fence(__ATOMIC_RELEASE)
/* Orders this thread against its own signal handlers only: costs no instruction. */
#define gw_fence_signal() __atomic_signal_fence(__ATOMIC_SEQ_CST)

#define gw_likely(x)   __builtin_expect(!!(x), 1)
#define gw_unlikely(x) __builtin_expect(!!(x), 0)

static inline void gw_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
