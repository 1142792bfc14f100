/*
 * PHP's own functions, and those of extensions: while anything observes calls, the engine lays a place for observers beside each of them, at every
 * request, thousands of them, and asks at the first call of each whether it is observed. None is here, so that all share one place that says so.
 */
#include <SAPI.h>
#include <stdlib.h>

#include "php_probe.h"

#if PHP_VERSION_ID >= 80200 && PHP_VERSION_ID < 80300

#define NOT_OBSERVED ((void *)2) /* what the engine itself puts down where nobody wants to be told */
#define PLACES_MOST 64

/* Where the engine keeps the places of functions that were made one after the other. */
struct range {
	uintptr_t first, end; /* offsets, one in each pointer's length */
};

static void *shared[PLACES_MOST];
static struct range *ranges;
static size_t range_count;
static uint32_t functions_seen, classes_seen; /* when the ranges were made */
static int handles;			      /* of the engine, put away while it begins a request */
static int (*next_activate)(void);

static bool range_add(uintptr_t offset)
{
	struct range *last = range_count ? &ranges[range_count - 1] : NULL;

	if (last && last->end == offset) {
		last->end += sizeof(void *);
		return true;
	}
	if (last && offset >= last->first && offset < last->end)
		return true;
	if (!(range_count & (range_count - 1))) {
		struct range *more = realloc(ranges, (range_count ? 2 * range_count : 1) * sizeof(*more));

		if (!more)
			return false;
		ranges = more;
	}
	ranges[range_count++] = (struct range){offset, offset + sizeof(void *)};
	return true;
}

static bool ranges_add(HashTable *functions)
{
	zend_internal_function *function;

	ZEND_HASH_MAP_FOREACH_PTR(functions, function) {
		if (function->type != ZEND_INTERNAL_FUNCTION)
			continue;
		if (!ZEND_MAP_PTR_IS_OFFSET(function->run_time_cache) || !range_add((uintptr_t)ZEND_MAP_PTR(function->run_time_cache)))
			return false;
	} ZEND_HASH_FOREACH_END();
	return true;
}

/* Finds all functions' places; false where one is of another kind than is known here. */
static bool ranges_make(void)
{
	zend_class_entry *class;

	range_count = 0;
	functions_seen = zend_hash_num_elements(CG(function_table));
	classes_seen = zend_hash_num_elements(CG(class_table));
	if (!ranges_add(CG(function_table)))
		return false;
	ZEND_HASH_MAP_FOREACH_PTR(CG(class_table), class) {
		if (!ranges_add(&class->function_table))
			return false;
	} ZEND_HASH_FOREACH_END();
	return true;
}

static bool is_known(void)
{
	return range_count && functions_seen == zend_hash_num_elements(CG(function_table)) &&
	       classes_seen == zend_hash_num_elements(CG(class_table));
}

/* The engine begins a request: with no places to lay it looks at no function. */
static void engine_begins(void)
{
	static bool is_unknown;

	if (handles || is_unknown || !ZEND_OBSERVER_ENABLED || !pd_is_only_observer() || zend_op_array_extension_handles > PLACES_MOST)
		return;
	is_unknown = !is_known() && !ranges_make();
	if (is_unknown)
		return;
	handles = zend_op_array_extension_handles;
	zend_op_array_extension_handles = 0;
}

void pd_internals_settle(void)
{
	if (!handles)
		return;
	zend_op_array_extension_handles = handles;
	handles = 0;
	shared[zend_observer_fcall_op_array_extension] = NOT_OBSERVED;
	shared[zend_observer_fcall_op_array_extension + 1] = NOT_OBSERVED;
	for (size_t i = 0; i < range_count; i++) {
		void **place = ZEND_MAP_PTR_OFFSET2PTR(ranges[i].first), **end = ZEND_MAP_PTR_OFFSET2PTR(ranges[i].end);

		while (place < end)
			*place++ = shared;
	}
}

/* The first thing after the engine's own beginning, before any code of the program's may run. */
static int server_begins(void)
{
	pd_internals_settle();
	return next_activate ? next_activate() : SUCCESS;
}

void pd_internals_begin(void)
{
	static zend_extension extension = {.name = "perfdiff", .version = NO_VERSION_YET, .activate = engine_begins};

	if (pd_counting_follow)
		return;
	zend_register_extension(&extension, NULL);
	next_activate = sapi_module.activate;
	sapi_module.activate = server_begins;
}

#else

void pd_internals_begin(void)
{
}

void pd_internals_settle(void)
{
}

#endif
