/* Between the writer of counts, once in a process, and the compilers' counters, once in each program and shared library. */
#ifndef PD_PLACES_H
#define PD_PLACES_H

#define PD_API __attribute__((visibility("default")))

/*
 * The counters of one program or library: `write` adds them to what this run's other processes wrote, `clear` sets them to 0. Both are the
 * compilers' own.
 */
struct pd_places {
	void (*write)(void);
	void (*clear)(void);
	struct pd_places *next;
};

PD_API void pd_places_add(struct pd_places *places);
PD_API void pd_places_remove(struct pd_places *places);

#endif
