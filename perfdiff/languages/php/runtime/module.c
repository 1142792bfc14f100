/*
 * `perfdiff`: loaded at PHP's start where an ini file of ours is among those that are read, and `PERFDIFF_PHP` names a sheet (see
 * perfdiff/languages/php/start.py). It has no functions and no settings: what it cannot do, it tells in a note.
 */
#include <stdlib.h>

#include "php_probe.h"

uint32_t pd_request;

static bool is_on;

static bool start(void)
{
	const char *sheet = getenv("PERFDIFF_PHP");

	if (!sheet || !pd_probes)
		return false;
	if (!pd_sheet_open(sheet) || !pd_observer_begin())
		return false;
	if (pd_counting_begin && !pd_counting_begin())
		return false;
	pd_fibers_begin();
	pd_garbage_begin();
	pd_internals_begin();
	return true;
}

static PHP_MINIT_FUNCTION(perfdiff)
{
	(void)type, (void)module_number;
	pd_note("version", PHP_VERSION);
	is_on = start();
	if (!is_on)
		pd_note("failed", "the probes could not be started");
	return SUCCESS;
}

/* The runtime's own end comes later, when the engine has gone: what is open now is closed here. */
static PHP_MSHUTDOWN_FUNCTION(perfdiff)
{
	(void)type, (void)module_number;
	if (is_on)
		pd_end();
	return SUCCESS;
}

static PHP_RINIT_FUNCTION(perfdiff)
{
	(void)type, (void)module_number;
	pd_request++;
	if (is_on) {
		pd_internals_settle();
		pd_rest_end();
		pd_sites_begin();
	}
	if (is_on && pd_counting_request_begin)
		pd_counting_request_begin();
	return SUCCESS;
}

/* Behind all destructors, and before the request's memory is given back. */
static ZEND_MODULE_POST_ZEND_DEACTIVATE_D(perfdiff)
{
	if (is_on && pd_counting_request_end)
		pd_counting_request_end();
	if (is_on)
		pd_request_end();
	return SUCCESS;
}

static zend_module_entry perfdiff_module_entry = {
	STANDARD_MODULE_HEADER,
	"perfdiff",
	NULL,
	PHP_MINIT(perfdiff),
	PHP_MSHUTDOWN(perfdiff),
	PHP_RINIT(perfdiff),
	NULL,
	NULL,
	NO_VERSION_YET,
	NO_MODULE_GLOBALS,
	ZEND_MODULE_POST_ZEND_DEACTIVATE_N(perfdiff),
	STANDARD_MODULE_PROPERTIES_EX,
};

ZEND_DLEXPORT zend_module_entry *get_module(void);
ZEND_DLEXPORT zend_module_entry *get_module(void)
{
	return &perfdiff_module_entry;
}
