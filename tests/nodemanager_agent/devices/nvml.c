/* A small libnvidia-ml.so.1 for tests: three devices, whose faults a file names (FACTS 7). Our own; no GPU is needed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { unsigned gpu, memory; } Rates;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { void *device; unsigned long long type, data; unsigned gi, ci; } Event;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } Process;

static long handles[3] = {0, 1, 2};

static int is(const char *fault) {
  char text[256] = {0};
  const char *path = getenv("FAKE_NVML");
  FILE *file = path ? fopen(path, "r") : NULL;
  if (!file) return 0;
  size_t n = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  return n > 0 && strstr(text, fault) != NULL;
}
static int number(void *device) { return (int)*(long *)device; }

int nvmlInit_v2(void) { return is("nodriver") ? 9 : 0; }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return nvmlInit_v2(); }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return code == 15 ? "GPU is lost" : "some error"; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = &handles[index]; return 0; }
int nvmlDeviceGetUUID(void *device, char *text, unsigned size) {
  if (is("lost1") && number(device) == 1) return 15;
  if (is("fell2") && number(device) == 2) return 15;
  snprintf(text, size, "GPU-%d", number(device)); return 0;
}
int nvmlDeviceGetName(void *device, char *text, unsigned size) { (void)device; snprintf(text, size, "Fake P100"); return 0; }
int nvmlDeviceGetMemoryInfo(void *device, Memory *memory) {
  if (is("lost1") && number(device) == 1) return 15;
  memory->total = 16384ULL << 20; memory->used = 1024ULL << 20; memory->free = memory->total - memory->used; return 0;
}
int nvmlDeviceGetUtilizationRates(void *device, Rates *rates) {
  if (number(device) == 2) return 3; /* not supported */
  rates->gpu = 25; rates->memory = 5; return 0;
}
int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, unsigned long long *count) {
  (void)kind; (void)counter;
  if (number(device) == 2) return 3;
  *count = is("ecc0") && number(device) == 0 ? 8 : 7; return 0;
}
int nvmlEventSetCreate(void **set) { *set = &handles; return 0; }
int nvmlEventSetFree(void *set) { (void)set; return 0; }
int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set) { (void)device; (void)types; (void)set; return 0; }
int nvmlEventSetWait_v2(void *set, Event *event, unsigned wait) {
  static int told = 0;
  (void)set; (void)wait;
  if (told || !(is("xid79") || is("xid13") || is("fell2"))) return 10; /* time-out */
  told = 1;
  event->device = &handles[2]; event->type = 8; event->data = is("xid13") ? 13 : 79; return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, Process *all) {
  if (number(device) == 2) return 3;
  if (*count < 1) { *count = 1; return 7; }
  *count = 1; all[0].pid = 4711; all[0].used = 1; return 0;
}
