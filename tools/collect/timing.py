"""How long one call takes on the GPU, without the gaps in which the host launches it."""

import statistics
import time

# One measurement lasts about this long, so that neither the events' resolution nor a single call decides it [s].
MEASURED_SECONDS = 20e-3
MOST_CALLS = 500  # a stream holds about 1000 launches before the host has to wait
SLEEP_CYCLES_PER_SECOND = 1.5e9  # of torch.cuda._sleep; only how long the host may take depends on it
CLOCK_TOLERANCE = 0.02
CLOCK_SAMPLES = 4


class NotTimed(Exception):
    """No timing without launch gaps could be had; the text says why."""


class Timing:
    """Times in seconds, one per repeat."""

    def __init__(self, method, seconds):
        self.method = method
        self.seconds = seconds

    def median_us(self):
        return statistics.median(self.seconds) * 1e6

    def spread_pct(self):
        """Half of the range that the middle half of the repeats covers, in percent of the median."""
        if len(self.seconds) < 2:
            return 0.0
        quarters = statistics.quantiles(self.seconds, n=4)
        return 50 * (quarters[2] - quarters[0]) / statistics.median(self.seconds)


def elapsed_seconds(torch, work, ahead):
    """GPU time of `work`, which is enqueued while the GPU is still busy with `ahead`."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    ahead()
    start.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e-3


def estimate(torch, call):
    """Rough time of one call [s], launch gap included."""
    for _ in range(2):
        call()
    return max(elapsed_seconds(torch, call, call), 1e-7)


def calls_per_measurement(seconds):
    return max(1, min(MOST_CALLS, round(MEASURED_SECONDS / seconds)))


def captured(torch, call, calls):
    """A CUDA graph of `calls` calls in a row."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    return graph


def time_by_graph(torch, call, calls, repeats):
    graph = captured(torch, call, calls)
    return [elapsed_seconds(torch, graph.replay, graph.replay) / calls for _ in range(repeats)]


def time_by_queue(torch, call, calls, repeats):
    """Every launch waits in the stream behind a kernel that does nothing: checked by the host's clock."""
    def work():
        for _ in range(calls):
            call()

    sleep = 20e-3
    for _ in range(6):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        work()
        host_seconds = time.perf_counter() - begin
        torch.cuda.synchronize()
        if host_seconds < 0.5 * sleep:
            cycles = int(sleep * SLEEP_CYCLES_PER_SECOND)
            return [elapsed_seconds(torch, work, lambda: torch.cuda._sleep(cycles)) / calls for _ in range(repeats)]
        sleep = 4 * host_seconds
    raise NotTimed("the host takes longer to launch than any pause that the queue was given")


def settle(torch, call, seconds):
    """Keeps the GPU busy with this very call, so that clock and power are those of the call."""
    calls = calls_per_measurement(estimate(torch, call))
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for _ in range(calls):
            call()
        torch.cuda.synchronize()


def time_call(torch, call, repeats, flush=None):
    """Timing of one call. `flush` runs before each call and its own time is taken off."""
    def flushed():
        flush()
        call()

    timed = flushed if flush else call
    calls = calls_per_measurement(estimate(torch, timed))
    try:
        method, measure = "graph", time_by_graph
        seconds = measure(torch, timed, calls, repeats)
    except RuntimeError as error:  # what cannot be captured, such as a call that synchronizes
        if "out of memory" in str(error):
            raise
        torch.cuda.synchronize()
        method, measure = "queue", time_by_queue
        seconds = measure(torch, timed, calls, repeats)
    if flush:
        alone = statistics.median(measure(torch, flush, calls, repeats))
        seconds = [total - alone for total in seconds]
        if statistics.median(seconds) <= 0:
            raise NotTimed("the call takes less than the noise of flushing L2")
    return Timing(method, seconds)


def warm_up(torch, call, clock, limit_seconds):
    """Runs `call` until CLOCK_SAMPLES readings of the SM clock agree; returns what was seen."""
    pause_seconds = min(0.5, limit_seconds / 10)
    begin = time.monotonic()
    clocks = []
    while time.monotonic() - begin < limit_seconds:
        settle(torch, call, pause_seconds)
        clocks.append(clock())
        last = clocks[-CLOCK_SAMPLES:]
        if None in last:
            return {"settled": None, "sm_clock_mhz": clocks}
        if len(last) == CLOCK_SAMPLES and max(last) - min(last) <= CLOCK_TOLERANCE * max(last):
            return {"settled": True, "sm_clock_mhz": clocks}
    return {"settled": False, "sm_clock_mhz": clocks}
