/*
 * perfdiff's probe: the part of the runtime that stands in the probed program.
 *
 * Included ahead of every translation unit, whatever its dialect, so it includes nothing, declares little, and keeps to
 * names that begin with pd_ or PD_. docs/architecture/probes.md has the interface; the rest is in libperfdiff.
 */
#ifndef PERFDIFF_PROBE_H
#define PERFDIFF_PROBE_H
#pragma GCC system_header

#ifdef __cplusplus
extern "C" {
#endif

typedef long pd_signed_t; /* 64 bits on all systems that the runtime supports */
typedef unsigned long pd_cell_t;

/* A call of a probed function, on its stack. Addresses are numbers, so that zeros initialise them in every dialect. */
struct pd_frame {
	unsigned int probe;
	unsigned int reserved;
	pd_cell_t entry; /* of the thread's shadow stack; 0: the call is not recorded */
	pd_cell_t cells; /* of a sampled call, 0 for others; the mask of read cells lies below them */
};

/* The declaration that makes a block a call of probe `number`, and its entry: 1 if this call is sampled. */
#ifndef PD_CALLED
#define PD_FRAME(number) struct pd_frame pd_frame_ __attribute__((__cleanup__(pd_leave))) = {number, 0, 0, 0}
#define PD_ENTER(number) pd_enter(&pd_frame_)
#else
#define PD_FRAME(number) struct pd_frame pd_frame_ __attribute__((__cleanup__(pd_leave)))
#define PD_ENTER(number) pd_enter_numbered(&pd_frame_, number)
#endif

/* How pd_field reads the value behind the last offset. */
enum pd_kind {
	PD_I8, PD_I16, PD_I32, PD_I64, PD_U8, PD_U16, PD_U32, PD_U64, PD_F32, PD_F64, PD_BOOL, PD_PTR
};

/*
 * None of them throws. C++ without knowing so would end a basic block at each call, and count another one of the calls that are sampled.
 */
#define PD_NOTHROW __attribute__((__nothrow__))

extern unsigned int pd_probes; /* probes of the plan, 0 while nothing is recorded */
/* One a probe: so many of the thread's next calls pass without a look. NULL before the thread's first call. */
extern __thread unsigned int *pd_gates __attribute__((__tls_model__("initial-exec")));

PD_NOTHROW int pd_enter_call(struct pd_frame *);
int pd_enter_keyed(struct pd_frame *, const void *key);
int pd_enter_moving(struct pd_frame *, const void *key);
void pd_leave_keyed(unsigned int probe, const void *key);
void pd_branch_keyed(const void *key, unsigned int branch, int outcome);
void pd_outcomes_keyed(const void *key, unsigned int branch, pd_cell_t met, pd_cell_t held);
void pd_resume_keyed(unsigned int probe, const void *key);
void pd_drop_calls(void);
int pd_is_open(void);
void *pd_detach(int waits);
void pd_attach(void *calls);
PD_NOTHROW int pd_start(struct pd_frame *);
PD_NOTHROW void pd_leave_call(struct pd_frame *);
PD_NOTHROW void pd_text(struct pd_frame *, unsigned int cell, const void *text);
PD_NOTHROW void pd_file(struct pd_frame *, unsigned int cell, const void *path);
PD_NOTHROW void pd_depth(struct pd_frame *, unsigned int cell, const void *path);
PD_NOTHROW void pd_type(struct pd_frame *, unsigned int cell, const void *object);
int pd_type_of(struct pd_frame *, unsigned int cell, const void *type);
void pd_type_tell(const void *type, const char *name);
int pd_is_off(unsigned int probe);
void pd_end(void);
void pd_costs_add(double counted, double timed, double inside, double passed);
void pd_rest_begin(void);
void pd_rest_end(void);
void pd_pause_begin(void);
void pd_pause_end(void);
void pd_waits_tell(void);
void pd_wait_begin(void);
void pd_wait_end(void);
void pd_note(const char *word, const char *text);
int pd_mark(const char *text);
int pd_lasting_line(const char *path, unsigned int line, unsigned long blocks, unsigned long bytes);
void pd_lasting_known(void);
void pd_open_tell(void);
PD_NOTHROW void pd_field(struct pd_frame *, unsigned int cell, const void *base, int kind, unsigned int depth, ...);
PD_NOTHROW void pd_field_text(struct pd_frame *, unsigned int cell, const void *base, unsigned int depth, ...);
PD_NOTHROW void pd_span(struct pd_frame *, unsigned int cell, const void *base, unsigned long element_size, unsigned int depth, ...);

#ifdef PD_CALLED
/* In a counted build all that stands in the program is counted, and in a survey's all functions have probes, which would compile for long. */
PD_NOTHROW int pd_enter_numbered(struct pd_frame *, unsigned int number);
PD_NOTHROW int pd_entered(int is_sampled);
PD_NOTHROW void pd_leave(struct pd_frame *);
PD_NOTHROW void pd_unsigned(struct pd_frame *, unsigned int cell, pd_cell_t value);
PD_NOTHROW void pd_signed(struct pd_frame *, unsigned int cell, pd_signed_t value);
PD_NOTHROW void pd_floating(struct pd_frame *, unsigned int cell, double value);
PD_NOTHROW int pd_branch(struct pd_frame *, unsigned int features, unsigned int branch, int outcome);
#else

#ifndef PD_INLINE
#define PD_INLINE static __inline__ __attribute__((__always_inline__, __no_instrument_function__))
#endif

/* Whether the next call of a probe passes without a look. */
PD_INLINE int pd_passes(unsigned int probe)
{
	unsigned int *gates;

	if (__builtin_expect(probe >= pd_probes, 0))
		return 1;
	gates = pd_gates;
	if (__builtin_expect(gates != 0, 1) && gates[probe]) {
		gates[probe]--;
		return 1;
	}
	return 0;
}

PD_INLINE int pd_enter(struct pd_frame *frame)
{
	return pd_passes(frame->probe) ? 0 : pd_enter_call(frame);
}

/*
 * Joins the ways into a body, with its probe off and on. What a compiler knows of memory on one of them it would carry into the body, and
 * leave out a pure call of a loop there (`strlen`) that the function makes each time without a probe.
 */
PD_INLINE int pd_entered(int is_sampled)
{
	__asm__ volatile("" : : : "memory");
	return is_sampled;
}

PD_INLINE void pd_leave(struct pd_frame *frame)
{
	if (__builtin_expect(frame->entry != 0, 0))
		pd_leave_call(frame);
}

PD_INLINE void pd_unsigned(struct pd_frame *frame, unsigned int cell, pd_cell_t value)
{
	pd_cell_t *cells = (pd_cell_t *)frame->cells;

	cells[cell] = value;
	*(cells - 1 - cell / 64) |= (pd_cell_t)1 << cell % 64;
}

PD_INLINE void pd_signed(struct pd_frame *frame, unsigned int cell, pd_signed_t value)
{
	pd_unsigned(frame, cell, (pd_cell_t)value);
}

PD_INLINE void pd_floating(struct pd_frame *frame, unsigned int cell, double value)
{
	pd_cell_t bits;

	__builtin_memcpy(&bits, &value, sizeof(bits));
	pd_unsigned(frame, cell, bits);
}

PD_INLINE int pd_branch(struct pd_frame *frame, unsigned int features, unsigned int branch, int outcome)
{
	pd_cell_t *cells = (pd_cell_t *)frame->cells;

	if (__builtin_expect(cells != 0, 0)) {
		cells += features + 2 * branch;
		cells[0]++;
		cells[1] += outcome != 0;
	}
	return outcome;
}

#undef PD_INLINE
#endif

#ifdef __cplusplus
}
#endif
#endif
