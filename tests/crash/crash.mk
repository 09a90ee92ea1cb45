# Programs that die, and what makes them: part of the root Makefile.
crash := $(B)/crash
crash_flags = $(filter-out $(SAN),$(CFLAGS_) $(CFLAGS))

$(crash)/libfail.so $(crash)/libinterposer.so: $(crash)/lib%.so: tests/crash/%.c $(B)/flags
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(CC) $(crash_flags) -MF $@.d -MT $@ -fPIC -shared $(LDFLAGS) $< -o $@ -ldl

$(crash)/count: $(B)/obj/tests/crash/count.o $(B)/libgpuwait-trace.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(CC) $(SAN) $(CFLAGS) $(LDFLAGS) $^ -lzstd -o $@

$(crash)/processes: tests/crash/processes.c $(noop)/libcuda.so.1 $(noop)/libcudart.so.13 $(B)/flags
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(CC) $(crash_flags) -MF $@.d -MT $@ $< -L$(noop) -Wl,--no-as-needed -l:libcuda.so.1 \
	    -l:libcudart.so.13 $(LDFLAGS) '-Wl,-rpath,$$ORIGIN/../noop' -pthread -o $@

$(crash)/sandbox: tests/crash/sandbox.c $(B)/flags
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(CC) $(crash_flags) -MF $@.d -MT $@ $< $(LDFLAGS) -o $@

.PHONY: crash
crash: $(crash)/libfail.so $(crash)/libinterposer.so $(crash)/sandbox $(crash)/count $(crash)/processes noop
