/*
 * Calls from the project's code of what is not the project's, by name: functions and methods of the engine and its extensions, and PHP code of
 * packages; and how long they take. Calls that these make are their own.
 */
#include <stdlib.h>
#include <string.h>

#include "../../interpreted/counting/spans.h"
#include "../runtime/php_probe.h"
#include "counting.h"

#define MOST_NAME 512
#define KNOWN 8192u /* functions, a power of two; more have no name */

/* A function, kept for as long as the process lives, and its number. */
struct known {
	zend_ulong hash;
	const char *name;
	uint32_t number;
};

static struct known table[KNOWN]; /* open addressing */
static uint32_t used;
static void (*next)(zend_execute_data *, zval *);

/* Whether a name is "owner::function", or "function" where there is no owner. */
static bool is_named(const char *name, const zend_class_entry *owner, const char *function)
{
	if (owner) {
		size_t length = strlen(ZSTR_VAL(owner->name)); /* of an anonymous class up to the zero byte in it */

		if (strncmp(name, ZSTR_VAL(owner->name), length) || name[length] != ':' || name[length + 1] != ':')
			return false;
		name += length + 2;
	}
	return !strcmp(name, function);
}

static uint32_t keep(struct known *place, zend_ulong hash, const zend_class_entry *owner, const char *function)
{
	char full[MOST_NAME];
	int length = snprintf(full, sizeof(full), "%s%s%s", owner ? ZSTR_VAL(owner->name) : "", owner ? "::" : "", function);

	if (length < 0 || length >= MOST_NAME || used == KNOWN / 2 || !(place->name = strdup(full)))
		return PD_UNNAMED;
	used++;
	place->hash = hash;
	return place->number = pd_outside_name(full);
}

static uint32_t number_of(const zend_function *called)
{
	zend_string *name = called->common.function_name;
	const zend_class_entry *owner = called->common.scope;
	zend_ulong hash;

	if (!name)
		return PD_UNNAMED; /* a file's own code, which `include` runs */
	hash = zend_string_hash_val(name) + (owner ? 31 * zend_string_hash_val(owner->name) : 0);
	for (uint32_t i = (uint32_t)(hash >> 3) % KNOWN;; i = (i + 1) % KNOWN) {
		if (!table[i].name)
			return keep(&table[i], hash, owner, ZSTR_VAL(name));
		if (table[i].hash == hash && is_named(table[i].name, owner, ZSTR_VAL(name)))
			return table[i].number;
	}
}

static void begin(zend_execute_data *frame)
{
	uint32_t number;

	if (!pd_is_own(frame->prev_execute_data))
		return;
	number = number_of(frame->func);
	if (number == PD_UNNAMED)
		return;
	pd_outside_call(number);
	pd_span_begin(number, frame, NULL, pd_instructions);
}

static void end(zend_execute_data *frame, zval *result)
{
	(void)result;
	pd_span_end(frame, NULL, pd_instructions);
}

static void execute_internal_counted(zend_execute_data *frame, zval *result)
{
	begin(frame);
	next(frame, result);
	pd_span_end(frame, NULL, pd_instructions);
}

/* What other code is observed for: that it is called from the project's, and ends. */
zend_observer_fcall_handlers pd_counting_follow(zend_execute_data *frame)
{
	zend_observer_fcall_handlers none = {NULL, NULL}, both = {begin, end};

	return pd_code_handle < 0 || !pd_is_foreign(pd_code_of(&frame->func->op_array)) ? none : both;
}

void pd_calls_begin(void)
{
	next = zend_execute_internal ? zend_execute_internal : execute_internal;
	zend_execute_internal = execute_internal_counted;
}
