# The ranks' copies and the program that runs them: make -f test/replay/build.mk BUILD=build OUT=FOLDER
# Sources are what stands in the folders, so that nothing is listed twice.
TOP := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))../..
OUT ?= build/replay
# Objects note their headers under one name, however the folder is written.
override OUT := $(abspath $(OUT))
BUILD ?= build
COMPONENT := $(TOP)/ompi/mca/coll/ibshift
HCA := $(TOP)/test/softhca
KERNEL := getrlimit clock_gettime getpid kill nanosleep usleep sched_yield open openat socket close fdopendir fcntl getrandom \
	posix_fallocate statvfs fstatvfs fopen fputs sysconf process_vm_readv process_vm_writev getenv
MEMORY := malloc calloc realloc posix_memalign aligned_alloc strdup free
NETS := ibshift_net_verbs_create ibshift_net_node_create ibshift_engine_create ibshift_engine_progress \
	ibshift_engine_free ibshift_report ibshift_report_counts
VERBS := $(addprefix ibv_,open_device alloc_pd create_cq create_qp create_srq create_ah modify_qp query_device query_gid \
	query_pkey get_device_list attach_mcast)
wrap = $(foreach f,$(1),-Wl,--wrap=$(f))
CFLAGS := -MMD -MP -std=gnu11 -O2 -g -fno-omit-frame-pointer -Wall -Wextra -Wno-unused-parameter -fPIC -ftls-model=initial-exec -D_GNU_SOURCE=1 -I$(COMPONENT) -I$(HCA) -I$(TOP)/ompi/tools/ibshift \
	-I$(TOP)/test/replay -DPACKAGE_VERSION='"replay"'
# What the product asks for, and what others do: only the product's memory is looked after, and refused.
PRODUCT := $(foreach f,readv writev,-Dprocess_vm_$(f)=replay_vm_$(f)) -Dopenat=replay_openat -Dmmap=replay_mmap -Dmunmap=replay_munmap -Dpoll=replay_poll -Dclock_gettime=replay_clock
ADAPTER := -Dpthread_create=replay_no_thread $(foreach f,malloc calloc realloc strdup free,-D$(f)=plain_$(f))
USER := $(foreach f,malloc calloc free,-D$(f)=user_$(f))
OMPI := -lmpi -lopen-pal
GLUE := $(shell sed -n 's/^coll_ibshift_CPPFLAGS = //p' $(BUILD)/ompi/mca/coll/ibshift/Makefile) -DIBSHIFT_HELP_DIR='"$(abspath $(COMPONENT))"'
# A rank may lose the processor at each branch, but where it only computes what no other sees.
BRANCHES := -fsanitize-coverage=trace-pc
PURE := $(foreach d,alg choose device plan,$(abspath $(COMPONENT))/$d/%)
product := $(filter-out $(COMPONENT)/lib/%,$(foreach depth,*.c */*.c */*/*.c,$(wildcard $(COMPONENT)/$(depth)))) # lib: the library for others
adapter := $(foreach d,shm verbs run wire fault,$(wildcard $(HCA)/$(d)/*.c))
adapter := $(filter-out %/faultspec.c,$(adapter))
rank := $(product) $(adapter) $(addprefix $(TOP)/test/replay/,rank.c call.c buffers.c kinds.c ompi.c nets.c cache.c left.c stranger.c branch.c)
front := $(foreach f,front/options front/control front/sysfs front/folder front/place front/wire_make fault/faultspec shm/shm shm/lock shm/life \
	shm/chan,$(HCA)/$(f).c)
world := $(addprefix $(TOP)/test/replay/,main.c scheduler.c story.c context.c causes.c faults.c wrap.c memory.c program.c) $(front)
libraries := $(BUILD)/ompi/tools/ibshift/.libs/libcli.a $(BUILD)/ompi/mca/coll/ibshift/.libs/libibshift_core.a
objects = $(patsubst $(TOP)/%.c,$(OUT)/$(2)/%.o,$(abspath $(1)))
TOP := $(abspath $(TOP))

all: $(OUT)/replay
$(OUT)/rank/%.o: $(TOP)/%.c $(TOP)/test/replay/build.mk
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MT $@ $(if $(findstring /replay/,$<),$(USER) $(GLUE),$(if $(filter $(PURE),$<),,$(BRANCHES)) \
		$(if $(findstring /softhca/,$<),$(ADAPTER) $(if $(findstring /shm/lock,$<),-Dsched_yield=replay_yield),$(PRODUCT) $(GLUE))) -c -o $@ $<
$(OUT)/world/%.o: $(TOP)/%.c $(TOP)/test/replay/build.mk
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MT $@ -c -o $@ $<
$(OUT)/rank.so: $(call objects,$(rank),rank)
	$(CC) -shared -Wl,-Bsymbolic $(call wrap,$(KERNEL) $(MEMORY) $(NETS) $(VERBS)) -o $@ $^ $(OMPI) -lhwloc -libverbs -lm
$(OUT)/replay: $(call objects,$(world),world) $(OUT)/rank.so
	$(CC) -rdynamic $(call wrap,$(KERNEL)) -o $@ $(filter %.o,$^) $(libraries) -ldl -lm -lpthread
	for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do cp $(OUT)/rank.so $@.rank$$i.so; done
-include $(patsubst %.o,%.d,$(call objects,$(rank),rank) $(call objects,$(world),world))
