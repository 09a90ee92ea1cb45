/* The sampler in tests that include lib/capture/record.c: what launches never ask it fails. */
void gw_stream_awaited(uint16_t stream, unsigned scope, uint64_t t1)
{
    (void)stream, (void)scope, (void)t1;
    fail();
}
void gw_stream_timed_by_user(uint16_t stream, uint64_t now)
{
    (void)stream, (void)now;
    fail();
}
void gw_stream_carries_collectives(uint16_t stream)
{
    (void)stream;
    fail();
}
bool gw_event_times(const void *event)
{
    (void)event;
    return false;
}
