"""The textbook's analyses in plain Python, for comparison: response times under preemptive fixed
priorities, and quick processor-demand analysis for EDF.

usage: peer.py FILE REPETITIONS

Each line of FILE is a task set: the analysis ("fp" or "qpa"), then period, execution time and deadline of
every task, in nanoseconds. For each line this prints the median processor time in seconds, then the
answers: the response times, or 1 if the set is schedulable, else 0.
"""

import statistics
import sys
import time


def response_times(tasks):
    """Joseph and Pandya 1986, with all jobs of the busy period (Lehoczky 1990)."""
    responses = []
    for index, (period, wcet, _) in enumerate(tasks):
        higher = tasks[:index]
        worst, job, window = 0, 0, wcet
        while True:
            while True:
                needed = (job + 1) * wcet + sum(-(-window // t) * c for t, c, _ in higher)
                if needed == window:
                    break
                window = needed
            worst = max(worst, window - job * period)
            if window <= (job + 1) * period:
                break
            job, window = job + 1, window + wcet
        responses.append(worst)
    return responses


def schedulable(tasks):
    """Zhang and Burns 2009."""
    busy = sum(c for _, c, _ in tasks)
    while True:
        needed = sum(-(-busy // t) * c for t, c, _ in tasks)
        if needed == busy:
            break
        busy = needed

    def demand(time):
        return sum(((time - d) // t + 1) * c for t, c, d in tasks if d <= time)

    def latest_deadline_before(time):
        return max((d + (time - 1 - d) // t * t for t, _, d in tasks if d < time), default=None)

    shortest = min(d for _, _, d in tasks)
    point = latest_deadline_before(busy)
    while point is not None:
        needed = demand(point)
        if needed > point:
            return [0]
        if needed <= shortest:
            break
        point = needed if needed < point else latest_deadline_before(point)
    return [1]


ANALYSES = {"fp": response_times, "qpa": schedulable}


def main():
    file, repetitions = sys.argv[1], int(sys.argv[2])
    with open(file, encoding="ascii") as lines:
        for line in lines:
            name, *numbers = line.split()
            numbers = list(map(int, numbers))
            tasks = list(zip(numbers[::3], numbers[1::3], numbers[2::3]))
            times = []
            for _ in range(repetitions):
                start = time.process_time()
                answers = ANALYSES[name](tasks)
                times.append(time.process_time() - start)
            print(statistics.median(times), *answers)


if __name__ == "__main__":
    main()
