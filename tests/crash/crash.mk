# Programs that die, and what makes them: part of the root Makefile.
crash := $(B)/crash
crash_flags = $(filter-out $(SAN),$(CFLAGS_) $(CFLAGS))

$(crash)/libfail.so: tests/crash/fail.c $(B)/flags
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(CC) $(crash_flags) -MF $@.d -MT $@ -fPIC -shared $(LDFLAGS) $< -o $@ -ldl

$(crash)/count: $(B)/obj/tests/crash/count.o $(B)/libgpuwait-trace.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(CC) $(SAN) $(CFLAGS) $(LDFLAGS) $^ -lzstd -o $@

.PHONY: crash
crash: $(crash)/libfail.so $(crash)/count noop
