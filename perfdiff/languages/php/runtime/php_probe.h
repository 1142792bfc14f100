/* What the parts of the extension share that probes PHP functions by way of perfdiff's runtime. */
#ifndef PERFDIFF_PHP_PROBE_H
#define PERFDIFF_PHP_PROBE_H

#include <php.h>
#include <zend_enum.h>
#include <zend_extensions.h>
#include <zend_fibers.h>
#include <zend_gc.h>
#include <zend_observer.h>
#include <zend_vm.h>
#if PHP_VERSION_ID >= 80400
#include <zend_lazy_objects.h>
#endif
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <perfdiff_probe.h>

#include "../../interpreted/runtime/sheet_text.h"

#if PHP_VERSION_ID < 80100 || PHP_VERSION_ID >= 80500 || defined(ZTS)
#error "PHP 8.1 to 8.4 without threads is supported"
#endif

#define pd_likely(condition) __builtin_expect(!!(condition), 1)
#define pd_unlikely(condition) __builtin_expect(!!(condition), 0)
#define PD_STEPS 4 /* of a path, at most */

/* What is read of a value. */
enum pd_how { PD_NUMBER, PD_LENGTH, PD_NESTED, PD_TYPE, PD_FILE, PD_DEPTH, PD_ENUM, PD_HOWS };

/* Where a path begins. */
enum pd_origin { PD_NOWHERE, PD_LOCAL, PD_VARIADIC, PD_CAPTURED, PD_THIS, PD_STATIC, PD_GLOBAL };

/* A step of a path: a property's name, or an array's key, which is a number where it looks like one. */
struct pd_step {
	zend_string *name;
	zend_ulong index;
	bool is_key;
	bool is_number;
	/* Where the property was the last time: in an object of this class, for code of this one, in the request of this number. */
	uint32_t request;
	uint32_t offset;
	const zend_class_entry *of, *seen_by;
};

/* A feature of one function: what is read, and the way to it. */
struct pd_reader {
	uint8_t how;
	uint8_t origin;
	uint8_t steps;
	uint32_t place;           /* of a variable in the frame */
	zend_string *name;        /* of the variable, of a class for PD_STATIC */
	zend_string *lower_class; /* of PD_STATIC */
	struct pd_step path[PD_STEPS];
};

/* What the executions of a function do. */
struct pd_plan {
	unsigned number;
	unsigned count;
	struct pd_plan *next; /* of the same probe, for code whose variables lie elsewhere */
	uint32_t operations;  /* of its code */
	uint16_t *outcomes;   /* of conditions, by operation: the condition's number from 1, 0 of those that decide none; NULL: none is watched */
	struct pd_reader readers[];
};

/* A probe's lines of the sheet. */
struct pd_probe_text {
	unsigned number;
	uint32_t first_line, last_line;
	const char *name;
	const char *readers; /* lines that begin with "read ", and behind them those with "branch " */
	struct pd_file_text *file;
	struct pd_plan *plans;
	struct pd_probe_text *next; /* with the same place in the table */
};

extern uint32_t pd_request; /* the request's number in this process, from 1 */

/* sheet.c */
bool pd_sheet_open(const char *path);
struct pd_probe_text *pd_sheet_find(const zend_op_array *code);
const char *pd_sheet_misplaced(const zend_op_array *code); /* the file's name in the tree, NULL where it lies where it should */
bool pd_sheet_has_lines(const zend_op_array *code); /* a probe on the same lines, of whatever file */
bool pd_sheet_has_name(const char *name); /* a probe, or a trait's method, of this name, without what it stands in; in any case of letters */

/* plans.c */
struct pd_plan *pd_plan_find(struct pd_probe_text *probe, const zend_op_array *code); /* NULL where there is no room */
void pd_features_read(struct pd_frame *call, struct pd_plan *plan, zend_execute_data *frame);

/* values.c */
zval *pd_property(zend_object *object, struct pd_step *step, zend_class_entry *scope);
zval *pd_static(zend_class_entry *class, zend_string *name);
zval *pd_element(zval *array, const struct pd_step *step);
void pd_value_read(struct pd_frame *frame, unsigned cell, enum pd_how how, zval *value);

/* observer.c */
bool pd_observer_begin(void);
bool pd_is_only_observer(void);
void pd_request_end(void);

/* sites.c */
void pd_sites_begin(void);
extern bool pd_frees_variables; /* nobody else looks at a call's variables when it has ended, nor knows by itself what they hold */

/* branches.c */
void pd_branches_begin(void);
void pd_branches_watch(zend_op_array *code); /* has the watched conditions of code told, as it is compiled */
uint16_t *pd_branches_find(const struct pd_probe_text *probe, const zend_op_array *code); /* as in a plan */

/* internals.c */
void pd_internals_begin(void);
void pd_internals_settle(void);

/* garbage.c */
void pd_garbage_begin(void);
extern uint64_t pd_collections, pd_collecting_ns;
extern bool pd_collects; /* a collection of garbage goes on: what runs in it is no part of the pause */

/* fibers.c */
void pd_fibers_begin(void);

/* ../counting/counting.c: of the extension that counts what calls do */
bool pd_counting_begin(void) __attribute__((weak, visibility("hidden")));
void pd_counting_request_begin(void) __attribute__((weak, visibility("hidden")));
void pd_counting_request_end(void) __attribute__((weak, visibility("hidden")));
zend_observer_fcall_handlers pd_counting_follow(zend_execute_data *frame) __attribute__((weak, visibility("hidden")));

/* The plan of a function with a probe, in a place that the engine keeps for us beside each function's code; NULL before its first call. */
extern int pd_plan_handle;
#define PD_PLAN(code) (*(struct pd_plan **)&ZEND_OP_ARRAY_EXTENSION(code, pd_plan_handle))

/* One that nothing is kept of yet, as before it has run in this request. */
static inline struct pd_plan *pd_plan_known(const zend_function *function)
{
	const zend_op_array *code = &function->op_array;

	if (function->type != ZEND_USER_FUNCTION || !RUN_TIME_CACHE(code))
		return NULL;
	return PD_PLAN(code);
}

#endif
