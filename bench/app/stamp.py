"""A call that returns the time at which it ran."""

import time

from holdfast_host import session


@session.call
def stamp(state, step):
    return time.monotonic() * 1000


session.run()
