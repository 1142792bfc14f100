/* Hot lines and what they lie in: lines.c, places.c, allocations.c. */
#ifndef PD_LINES_H
#define PD_LINES_H

#include "pmu.h"

/* A block of a hot line, or page, in the recording: this, its cores, then its places. */
#define PD_BLOCK_LINE 6u

struct pd_line_block {
	struct pd_block block;
	uint64_t address;
	uint64_t size; /* of the line, or of the page */
	uint64_t hitm;
	uint64_t hitm_false;
	uint64_t remote;
	uint64_t missed; /* at most so many events came before the line was watched */
	uint32_t cores;
	uint32_t places;
};

/* What a core did in the line at the events that were seen: one bit a byte. */
struct pd_line_core {
	uint32_t core; /* PD_OTHER_CORES: all beyond those named */
	uint32_t reserved;
	uint64_t events;
	uint64_t read;
	uint64_t written;
};

#define PD_OTHER_CORES UINT32_MAX

enum pd_place_kind { PD_PLACE_NONE, PD_PLACE_OBJECT, PD_PLACE_HEAP, PD_PLACE_STACK };

struct pd_line_place {
	uint32_t kind;
	uint32_t core;    /* whose stack it is */
	uint64_t address; /* heap: where the allocation began */
	uint64_t size;    /* heap: requested */
	uint64_t offset;  /* as the object's symbols count: of the line, or of the call that allocated it */
	uint64_t length;  /* of the object's path, which follows, filled up to 8 bytes */
};

/* A live allocation; `site` is where the call returns to, `probe` that of the innermost open call; 0: none. */
struct pd_allocation {
	uintptr_t address;
	size_t size;
	uintptr_t site;
	uint32_t probe;
	uint32_t process; /* as `pd_allocations_process` told: what a child of a fork inherits is its parent's */
};

/* allocations.c */
void pd_allocated(void *memory, size_t size, const void *site);
void pd_freed(void *memory);
void pd_allocated_for(void *memory, const void *site); /* what a library has allocated for its caller is the caller's */
void pd_allocations_visit(void (*visit)(const struct pd_allocation *allocation));
uint32_t pd_allocations_process(void);

/* lasting.c */
bool pd_lasting_end(void);

/* lines.c */
void pd_lines_note_remote(uintptr_t line, uint32_t core);
void pd_lines_attach(const struct pd_allocation *allocation); /* before it is freed; at the end, all that are left */
void pd_lines_end(void);

/* places.c */
uint32_t pd_stack_owner(uintptr_t address); /* the core whose stack it lies in, or PD_OTHER_CORES */
bool pd_object_of(uintptr_t address, uint64_t *offset, char *path, size_t room);

#endif
