// A stand-in for libnvidia-ml.so.1: it answers as the documentation of NVIDIA's library says, with GPUs that do not exist. What it plays is
// chosen by the environment:
//
//   STANDIN        one of: ampere, hopper, idle, mig, two-programs, lost, hang, hang-init, no-permission, gpu-no-permission, mismatch,
//                  not-loaded, no-gpu, noisy, unsupported
//   STANDIN_TRACE  a file of GPU utilisation samples: "microseconds percent" per line, one block per look at the buffer, blocks
//                  separated by "--"; the last block repeats. Empty: no samples.
//
// -DOLD leaves out what old drivers do not have, -DOTHER everything: a library of the same name and another purpose.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK, UNINITIALIZED, INVALID, UNSUPPORTED, PERMISSION, NOT_FOUND = 6, TOO_SMALL, NOT_LOADED = 9, LOST = 15, MISMATCH = 18 };

#ifdef OTHER
int something_else(void) { return OK; }
#else

typedef struct gpu { int index, instance, looks, taken; } gpu;
typedef struct { unsigned long long time; union { double d; unsigned u; unsigned long long ll; } value; } sample;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory;
typedef struct { unsigned pid; unsigned long long memory; unsigned gpu_instance, compute_instance; } process;

static gpu gpus[2] = {{0, -1, 0, 0}, {1, -1, 0, 0}};
static int started;

static int plays(const char *name) {
  const char *what = getenv("STANDIN");
  return what && strcmp(what, name) == 0;
}

// A call before a successful start would be a mistake that NVIDIA's library does not forgive either.
static int fault(gpu *g) {
  if (!started) abort();
  if (plays("unsupported")) return UNSUPPORTED;
  if (g && g->index == 0 && plays("lost") && g->looks > 0) return LOST;
  return OK;
}

#define CHECK(g) do { int f = fault(g); if (f) return f; } while (0)

int nvmlInit_v2(void) {
  if (plays("mismatch")) return MISMATCH;
  if (plays("not-loaded")) return NOT_LOADED;
  if (plays("no-permission")) return PERMISSION;
  if (plays("hang-init")) for (;;) pause();
  if (plays("noisy")) { printf("WARNING: you should always run with another libnvidia-ml.so\n"); fflush(stdout); }
  started = 1;
  return OK;
}

int nvmlSystemGetDriverVersion(char *text, unsigned size) {
  if (!started) abort();
  return snprintf(text, size, "580.65.06"), OK;
}

int nvmlDeviceGetCount_v2(unsigned *n) {
  if (!started) abort();
  *n = plays("no-gpu") ? 0 : plays("lost") || plays("hang") || plays("gpu-no-permission") ? 2 : 1;
  return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, gpu **g) {
  if (!started) abort();
  if (i == 0 && plays("gpu-no-permission")) return PERMISSION;
  *g = &gpus[i];
  return OK;
}

int nvmlDeviceGetUUID(gpu *g, char *text, unsigned size) {
  CHECK(g);
  return g->instance < 0 ? snprintf(text, size, "GPU-%d", g->index) : snprintf(text, size, "MIG-%d", g->instance), OK;
}

int nvmlDeviceGetName(gpu *g, char *text, unsigned size) {
  CHECK(g);
  return snprintf(text, size, "Stand-in%s", g->instance < 0 ? "" : " MIG 1g.10gb"), OK;
}

int nvmlDeviceGetMemoryInfo(gpu *g, unsigned long long *m) {
  CHECK(g);
  m[0] = 80ull << 30, m[1] = 70ull << 30, m[2] = 10ull << 30;
  return OK;
}

static int processes(gpu *g, unsigned *n, process *p) {
  CHECK(g);
  unsigned have = plays("two-programs") ? 2 : 1;
  if (*n < have) return *n = have, TOO_SMALL;
  p[0] = (process){4242, 6ull << 30, 0, 0};
  if (have > 1) p[1] = (process){4343, ~0ull, 0, 0}; // NVML_VALUE_NOT_AVAILABLE
  return *n = have, OK;
}

int nvmlDeviceGetComputeRunningProcesses_v2(gpu *g, unsigned *n, process *p) { return processes(g, n, p); }

int nvmlDeviceGetClockInfo(gpu *g, int kind, unsigned *mhz) { CHECK(g); return *mhz = kind == 1 ? 1410 : 1593, OK; }
int nvmlDeviceGetMaxClockInfo(gpu *g, int kind, unsigned *mhz) { CHECK(g); return *mhz = kind == 1 ? 1980 : 2619, OK; }
int nvmlDeviceGetCurrentClocksThrottleReasons(gpu *g, unsigned long long *bits) { CHECK(g); return *bits = 0x4 | 0x40, OK; }
int nvmlDeviceGetUtilizationRates(gpu *g, unsigned *percent) { CHECK(g); return percent[0] = percent[1] = plays("idle") ? 0 : 40, OK; }
int nvmlDeviceGetPcieThroughput(gpu *g, int rx, unsigned *kilobytes) { CHECK(g); return *kilobytes = rx ? 1200000 : 3000, OK; }

#ifndef OLD

// Like NVIDIA's: without room it says how much it has, the entries are in order of arrival.
int nvmlDeviceGetSamples(gpu *g, int kind, unsigned long long since, int *value_kind, unsigned *n, sample *out) {
  const char *name = getenv("STANDIN_TRACE");
  FILE *f = name ? fopen(name, "r") : NULL;
  char line[128];
  int block = 0;
  unsigned have = 0;
  (void)kind;
  if (plays("hang") && g->index == 1) { fprintf(stderr, "stand-in hangs\n"); for (;;) pause(); }
  CHECK(g);
  if (plays("mig")) return UNSUPPORTED;
  *value_kind = 1;
  while (f && fgets(line, sizeof line, f)) {
    unsigned long long time;
    unsigned percent;
    if (strncmp(line, "--", 2) == 0) {
      if (block == g->looks) break;
      block++, have = 0;
    } else if (sscanf(line, "%llu %u", &time, &percent) == 2 && time > since) {
      if (out && have < *n) out[have].time = time, out[have].value.ll = 0, out[have].value.u = percent;
      have++;
    }
  }
  if (f) fclose(f);
  if (out || have == 0) g->looks++;
  if (out && have > *n) have = *n;
  return *n = have, have ? OK : NOT_FOUND;
}

int nvmlDeviceGetMemoryInfo_v2(gpu *g, memory *m) {
  CHECK(g);
  if (m->version != (sizeof *m | 2u << 24)) return 25;
  m->total = 80ull << 30, m->reserved = 1ull << 30, m->free = 70ull << 30, m->used = 9ull << 30;
  return OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(gpu *g, unsigned *n, process *p) { return processes(g, n, p); }
int nvmlDeviceGetGraphicsRunningProcesses_v3(gpu *g, unsigned *n, process *p) { CHECK(g); (void)p; return *n = 0, OK; }
int nvmlDeviceGetMPSComputeRunningProcesses_v3(gpu *g, unsigned *n, process *p) { CHECK(g); (void)p; return *n = 0, OK; }
int nvmlDeviceGetCurrentClocksEventReasons(gpu *g, unsigned long long *bits) { CHECK(g); return *bits = 0x4 | 0x40, OK; }

static gpu instances[2] = {{0, 3, 0, 0}, {0, 5, 0, 0}};

int nvmlDeviceGetMigMode(gpu *g, unsigned *now, unsigned *pending) {
  CHECK(g);
  if (plays("ampere")) return UNSUPPORTED;
  return *now = *pending = plays("mig"), OK;
}
int nvmlDeviceGetMaxMigDeviceCount(gpu *g, unsigned *n) { CHECK(g); return *n = 7, OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(gpu *g, unsigned i, gpu **out) {
  CHECK(g);
  if (i != 0 && i != 2) return NOT_FOUND; // places in between are empty
  return *out = &instances[i / 2], OK;
}
int nvmlDeviceGetGpuInstanceId(gpu *g, unsigned *id) { return g->instance < 0 ? INVALID : (*id = g->instance, OK); }

// Counters: a sample is the number of samples taken before, and whose they are.
typedef struct { unsigned id; int status; double value; char *names[3]; } metric;
typedef struct { int taken, instance; } counters;
typedef struct { unsigned version, n; counters *a, *b; metric m[]; } question;
typedef struct { unsigned version, supported; } support;

static int alive; // samples that were not freed

int nvmlGpmQueryDeviceSupport(gpu *g, support *s) { CHECK(g); return s->supported = !plays("ampere"), OK; }
int nvmlGpmSampleAlloc(counters **s) { *s = calloc(1, sizeof **s); return __atomic_add_fetch(&alive, 1, 5) > 64 ? 20 : OK; }
int nvmlGpmSampleFree(counters *s) { free(s); __atomic_sub_fetch(&alive, 1, 5); return OK; }
int nvmlGpmSampleGet(gpu *g, counters *s) { CHECK(g); s->taken = ++g->taken, s->instance = -1; return OK; }
int nvmlGpmMigSampleGet(gpu *g, unsigned id, counters *s) {
  CHECK(g);
  gpu *i = id == 3 ? &instances[0] : &instances[1];
  return s->taken = ++i->taken, s->instance = id, OK;
}
int nvmlGpmMetricsGet(question *q) {
  if (q->version != 1 || q->a->instance != q->b->instance || q->a->taken >= q->b->taken) return INVALID;
  for (unsigned i = 0; i < q->n; i++) {
    metric *m = &q->m[i];
    m->status = OK;
    switch (m->id) {
      case 1: m->value = 90; break;
      case 2: m->value = q->a->instance < 0 ? 62.5 : q->a->instance; break;
      case 20: case 21: m->status = q->a->instance < 0 ? OK : UNSUPPORTED; m->value = m->id == 21 ? 512 : 2; break;
      default: m->status = UNSUPPORTED;
    }
  }
  return OK;
}
#endif
#endif
