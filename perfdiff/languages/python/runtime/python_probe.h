/* What the parts of `_perfdiff` share: the extension module that probes Python functions by way of perfdiff's runtime. */
#ifndef PERFDIFF_PYTHON_PROBE_H
#define PERFDIFF_PYTHON_PROBE_H

#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE_MODULE 1
#include <Python.h>
#include <internal/pycore_interp.h>
#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_code.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_object.h>
#else
#include <frameobject.h>
#endif
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <perfdiff_probe.h>

#include "../../interpreted/runtime/sheet_text.h"
#include "pause.h"

#if PY_VERSION_HEX < 0x030a0000 || PY_VERSION_HEX >= 0x030f0000 || defined(Py_GIL_DISABLED)
#error "CPython 3.10 to 3.14 with its lock are supported"
#endif

#define pd_likely(condition) __builtin_expect(!!(condition), 1)
#define pd_unlikely(condition) __builtin_expect(!!(condition), 0)
#define PD_STEPS 4 /* attributes of a path, at most */

/* What is read of a value. */
enum pd_how { PD_NUMBER, PD_LENGTH, PD_NESTED, PD_TYPE, PD_FILE, PD_DEPTH, PD_BYTES, PD_ROWS, PD_COLUMNS, PD_HOWS };

/* Where a path begins. */
enum pd_origin { PD_LOCAL, PD_FREE, PD_GLOBAL, PD_NOWHERE };

/* A feature of one code object: what is read, and the way to it. Names are interned. */
struct pd_reader {
	uint8_t how;
	uint8_t origin;
	uint8_t steps;
	int32_t place;    /* of a local variable in the frame, of a free one in the closure */
	PyObject *global;
	PyObject *names[PD_STEPS];
	uint32_t hints[PD_STEPS]; /* where each attribute was among its type's keys the last time */
};

/* What a code object's executions do; number 0: nothing. */
struct pd_plan {
	unsigned number;
	bool generates; /* a generator or coroutine: its creation is no call */
	bool is_watched; /* its events are set */
	unsigned count;
	Py_ssize_t units;
	uint16_t *outcomes; /* for each unit of the code, what pd_outcome makes; NULL: no condition is watched */
	struct pd_reader readers[];
};

/* Of a conditional jump: which condition it decides, and whether it jumps where that holds; 0 of all other instructions. */
#define pd_outcome(branch, jumps_where_true) ((uint16_t)(2 * ((branch) + 1) + (jumps_where_true)))

/* A probe's lines of the sheet. */
struct pd_probe_text {
	unsigned number;
	int first_line;
	uint64_t hash; /* of the code's name */
	const char *name;
	const char *readers; /* lines that begin with "read " */
	struct pd_file_text *file;
	struct pd_probe_text *next; /* with the same place in the table */
};

/* sheet.c */
bool pd_sheet_open(const char *path);
const struct pd_probe_text *pd_sheet_find(int first_line, const char *name, const char *file);
struct pd_file_text *pd_sheet_module(const char *module);

/* evaluator.c */
void pd_evaluator_begin(PyInterpreterState *interpreter);
bool pd_evaluator_stands(void);

/* monitoring.c */
bool pd_monitoring_begin(void);
bool pd_monitoring_stands(void);

/* values.c */
bool pd_values_begin(void);
void pd_value_read(struct pd_frame *frame, unsigned cell, enum pd_how how, PyObject *value);

/* attributes.c */
bool pd_attributes_begin(void);
PyObject *pd_item(PyObject *dictionary, PyObject *name);
PyObject *pd_attribute(PyObject *object, PyObject *name, uint32_t *hint);

/* ../counting/counting.c: of the module that counts what calls do, behind the evaluator that makes them */
bool pd_counting_begin(void) __attribute__((weak, visibility("hidden")));
bool pd_counting_stands(void) __attribute__((weak, visibility("hidden")));
void pd_lasting_tell(void) __attribute__((weak, visibility("hidden")));

#endif
