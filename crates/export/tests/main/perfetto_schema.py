"""Prints what Perfetto's own schema has against a trace, as a JSON list. Argument: the file."""

import collections
import json
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2

faults = []


def look(message, place):
    """Fields that the schema does not have, or has with another type, are unknown to it."""
    for field in UnknownFieldSet(message):
        faults.append(f"{place}: unknown field {field.field_number}")
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in value if field.is_repeated else [value]:
                look(part, f"{place}.{field.name}")


trace = perfetto_trace_pb2.Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())
if not trace.IsInitialized():
    faults.append("required fields are missing")

tracks = {packet.track_descriptor.uuid: packet.track_descriptor for packet in trace.packet if packet.HasField("track_descriptor")}
depth = collections.Counter()
kinds = collections.Counter()
for packet in trace.packet:
    look(packet, "packet")
    kinds[packet.WhichOneof("data")] += 1
    for event in packet.ftrace_events.event:
        kinds[event.WhichOneof("event")] += 1
    if packet.HasField("track_event"):
        event = packet.track_event
        track = event.track_uuid
        if track not in tracks:
            faults.append(f"an event on track {track}, which is not described")
        depth[track] += {event.TYPE_SLICE_BEGIN: 1, event.TYPE_SLICE_END: -1}.get(event.type, 0)
        if depth[track] < 0:
            faults.append(f"a slice ends on track {track} that has not begun")
        if event.type == event.TYPE_COUNTER and not tracks[track].HasField("counter"):
            faults.append(f"a counter on track {track}, which is none")
for descriptor in tracks.values():
    if descriptor.HasField("parent_uuid") and descriptor.parent_uuid not in tracks:
        faults.append(f"track {descriptor.name} has a parent that is not described")
faults += [f"{open_slices} slices on track {track} do not end" for track, open_slices in depth.items() if open_slices > 0]
faults += [f"there is no {kind}" for kind in ("track_event", "process_tree", "sched_switch", "sched_waking") if not kinds[kind]]
json.dump(faults, sys.stdout)
