/* The frames that calls are told by, from 3.12 on. */
#include "../runtime/frames.h"

#include "../lines/lines.h"

#if PY_VERSION_HEX >= 0x030c0000

const void *pd_frame_running(void)
{
	return frame_current();
}

const void *pd_frame_behind(void)
{
	return frame_current()->previous;
}

#endif
