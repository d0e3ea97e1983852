//! Preparing a run: everything that may fail, allocate or take time.

use crate::control::Control;
use crate::dispatcher::{self, Dispatcher};
use crate::error::PrepareError;
use crate::flow::{Call, Gate, JobFlowSetUp, Port, Shared, Tally};
use crate::guard_post::{GuardPost, Summons, Timers};
use crate::guarding::GuardKeeper;
use crate::hierarchy::{self, HierarchyError, HierarchyParts, release_is_above};
use crate::hierarchy_node::{HierarchyNode, confirm_lowering};
use crate::job_table::JobTable;
use crate::join::{JoinTable, Joining};
use crate::keeping::{self, Kept, ValueLog, ValueWriting};
use crate::kept_events::KeptEvents;
use crate::lane::SteppedLanesSetUp;
use crate::layout::{Hosted, LaneSite, Layout};
use crate::link::Link;
use crate::lowered;
use crate::lowering::{NodeSettings, lower};
use crate::occupancy::Processor;
use crate::operation::Behaviour;
use crate::options::{RtMode, RunOptions};
use crate::outcome::Outcome;
use crate::plans::{NO_LANES, check_apart, metadata, plans, unset};
use crate::posting_table::PostingTable;
use crate::recorder::Recording;
use crate::run::{Participants, Prepared};
use crate::store::{Store, ring_records};
use crate::threads::{CreatedThreads, Inboxes, ThreadPlan};
use crate::trigger_table::Triggering;
use crate::window::{self, Pace};
use std::cell::RefCell;
use std::sync::{Arc, Mutex, OnceLock};
use talea_linux::affinity;
use talea_linux::burn::Burner;
use talea_linux::memory::lock_all;
use talea_linux::ready::ReadySet;
use talea_linux::sched::Policy;
use talea_linux::thread::spawn;
use talea_model::LaneDispatch::Preemptive;
use talea_model::{OperationId, OutputId, PublicationId, Scheduling, System, Task, Trigger};
use talea_notification::declared;
use talea_operation::{
    Assembled, KeptOutputs, Operations, PostedOperation, PostingRoom, ProgramPublications, ReplayWorkplace,
    Wiring, Workplace,
};
use talea_policy::lane::JobOrder;
use talea_policy::release::bounds::ResponseBounds;
use talea_policy::release::guard::Guards;
use talea_policy::strategy::Plan;
use talea_record::{Metadata, RingFile};
use talea_ring::bell::Bell;
use talea_ring::inbox::Links;
use talea_time::Instant;

/// Runs systems on threads of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Executive;

impl Executive {
    /// Prepares a run of all nodes of `system` in this process.
    ///
    /// # Errors
    /// See [`PrepareError`].
    pub fn prepare(
        system: &System,
        operations: Operations,
        options: RunOptions,
    ) -> Result<Prepared, PrepareError> {
        prepare(system, operations, options, Execution::Threads(Hosted::All))
    }

    /// Prepares what looks like a run and has no threads, for a program that is asked to replay one: what it declares comes to `workplace`, and in
    /// place of [`Prepared::run`] this is called. Nothing is asked of the machine that a run needs, and no trace is kept.
    ///
    /// # Errors
    /// See [`PrepareError`].
    pub fn prepare_replay(
        system: &System,
        options: RunOptions,
        workplace: ReplayWorkplace,
        replay: impl FnOnce() -> Outcome + Send + 'static,
    ) -> Result<Prepared, PrepareError> {
        let (keep_log, keep_values) = (None, KeptOutputs::None);
        let options = RunOptions { rt: RtMode::Off, keep_log, keep_values, ..options };
        let mut prepared = prepare(system, Operations::synthetic(), options, Execution::Replay(workplace))?;
        prepared.replay_with(Box::new(replay));
        Ok(prepared)
    }
}

/// Who executes what is prepared.
pub(crate) enum Execution {
    /// Threads of this process, of these nodes.
    Threads(Hosted),
    /// Nobody: jobs of a recorded run are called again, those of the operations too that are declared here.
    Replay(ReplayWorkplace),
}

/// Prepares a run.
pub(crate) fn prepare(
    system: &System,
    operations: Operations,
    options: RunOptions,
    execution: Execution,
) -> Result<Prepared, PrepareError> {
    let (hosted, replayed) = match execution {
        Execution::Threads(hosted) => (hosted, None),
        Execution::Replay(workplace) => (Hosted::All, Some(workplace)),
    };
    let is_executed = replayed.is_none();
    let system = &system.with_threads_as_tasks();
    let plans = plans(system)?;
    let room = room_of(&options, &plans, &hosted)?;
    let mut nodes = lower_nodes(system, &plans, &options, &hosted)?;
    let kept_parts = options.keep_values.among(system)?;
    let keeps_posts = room.operations > 0 && options.keep_values != KeptOutputs::None;
    if hosted == Hosted::All && options.keep_log.is_none() && (kept_parts.are_any() || keeps_posts) {
        return Err(PrepareError::ValuesWithoutTrace);
    }
    let kept_count = kept_parts.count();
    let room_of_output = |output: OutputId, bytes| {
        let operation = system.outputs()[output.index()].operation;
        kept_parts.outputs[output.index()].then(|| keeping::room(system, operation, kept_count, bytes))
    };
    let keeps_events = |operation: OperationId| {
        kept_parts.events[operation.index()] && hosted.hosts(system.subtask(operation).node)
    };
    let room_of_events = |operation: OperationId| match keeps_events(operation) {
        true => keeping::room(system, operation, kept_count, keeping::event_bytes(system, operation)),
        false => 0,
    };
    let room_of_pushes = |publication: PublicationId| {
        let operation = system.publications()[publication.index()].operation;
        let is_kept = kept_parts.pushes[publication.index()] && hosted.hosts(system.subtask(operation).node);
        let bytes = keeping::push_bytes(system, publication);
        if is_kept { keeping::room(system, operation, kept_count, bytes) } else { 0 }
    };
    let instances = window::longest(options.window);
    let room_in_channels = declared::Room { taken: &room_of_events, pushed: &room_of_pushes, instances };
    let wiring = Wiring { hosts: &|node| hosted.hosts(node), kept: &room_of_output, ..Wiring::WHOLE };
    let connected = declared::connect(system, operations, room_in_channels);
    let channels = connected.factories;
    let Assembled { mut operations, kept, bindings } = connected.operations.assemble_as(system, &wiring)?;
    // One thread posts what waits for its time in channels.
    let room = PostingRoom { posters: room.posters + usize::from(!bindings.is_empty()), ..room };
    let first_node = (0..system.nodes.len()).find(|node| hosted.hosts(*node)).unwrap_or(0);
    let is_here = |operation: OperationId| hosted.hosts(system.subtask(operation).node);
    let beside = keeping::beside_values(system, &mut operations, &kept_parts, is_here);
    let kept = (kept, beside);
    // Only runs in one process have room for posted work.
    let (kept_events, of_program) = match keeps_posts && is_executed {
        true => {
            let (sender, end) = KeptEvents::new();
            (Some(sender), Some(end))
        }
        false => (None, None),
    };
    let (value_log, without_bytes) =
        ValueLog::new((system, first_node), kept, of_program, &options.keep_values)?;
    let behaviours: Vec<Behaviour> = operations.into_iter().map(Behaviour::of).collect();
    check_apart(system)?;
    if is_executed {
        check_cpus(system, &hosted)?;
    }
    let Privileges { realtime, mut missing } = Privileges::obtain(options.rt, options.band.top)?;
    let is_hierarchy = |node: &usize| system.scheduling(*node) == Scheduling::Hierarchy;
    let hierarchies: Vec<usize> = (0..system.nodes.len())
        .filter(is_hierarchy)
        .filter(|node| is_executed && hosted.hosts(*node))
        .collect();
    let decided = |node: usize| {
        (is_executed && hosted.hosts(node)).then(|| confirm_lowering(system, node, &options)).flatten()
    };
    let lowerings: Vec<_> = (0..system.nodes.len()).map(decided).collect();
    let settings_of = |node: usize| lowerings[node].as_ref().and_then(|lowering| lowering.settings.as_ref());
    let is_lowered = |node: usize| settings_of(node).is_some();
    if let Some(&node) = hierarchies.iter().find(|node| !realtime && !is_lowered(**node)) {
        return Err(unset(system, node, HierarchyError::NotEnforceable { missing }));
    }
    let lowered = |node: usize| Some((node, NodeSettings::Hierarchy(settings_of(node)?.clone())));
    nodes.extend(hierarchies.iter().filter_map(|node| lowered(*node)));
    let is_own_lane = |thread: usize| {
        let thread = &system.threads[thread];
        is_lowered(thread.node) && !thread.work.is_program()
    };

    let leaving = hierarchy::leaving(system, &plans, options.slicing, is_lowered);
    let judging = (&lowerings[..], options.tolerance);
    let mut metadata = metadata(system, &plans, realtime, Instant::ZERO, judging, &leaving)?;
    metadata.reserve_posted(room.operations);
    let bounds = ResponseBounds::of(system)?;
    let guards: Vec<Guards> =
        (0..system.nodes.len()).map(|node| Guards::of_node(system, node, &bounds)).collect();
    let layout = Layout::new(system, &plans, &bounds, &guards, (|node| hosted.hosts(node), is_own_lane));
    let layout = layout.with_room(room.operations);
    let mut windows = choose_windows(system, &layout, &options);
    let described: usize = windows.iter().sum();
    windows.extend(std::iter::repeat_n(room.window(), room.operations));
    let jobs = JobTable::new(&windows);
    let links = Links::new(jobs.capacity());
    let stepper = options.stepped.then(|| Arc::new(Bell::new()));
    let (ports, inboxes) = open_ports(system, &layout, (&links, stepper.as_ref()), (&hosted, is_lowered));
    let (guard_posts, keepers) = open_guards(system, guards, &links, &hosted)?;
    let firsts =
        |task: usize| system.tasks[task].trigger.as_ref().map_or(0, |_| layout.triggered(task).firsts.len());
    let triggering = (0..system.tasks.len()).map(|task| Triggering::new(firsts(task))).collect();
    let has_timers = layout.local_operations().any(|site| site.bound.is_some());
    let timers = Timers::new(if has_timers { jobs.capacity() } else { 0 });
    let link = open_link(system, &hosted, &options)?;
    let highest_cpu = system.nodes.iter().flat_map(|node| &node.cpus).max().copied().unwrap_or(0);
    let burner = Burner::calibrate();
    let run = replayed.as_ref().map_or_else(PostedOperation::next_run, ReplayWorkplace::run);
    let shared = Arc::new(Shared {
        posting: PostingTable::new(run, room, behaviours.len(), described),
        behaviours,
        input_names: system.inputs().iter().map(|site| site.name.clone()).collect(),
        jobs,
        joins: JoinTable::new(
            windows
                .iter()
                .zip(layout.local_operations())
                .map(|(window, site)| Joining { window: *window, predecessors: site.predecessors }),
        ),
        timers,
        triggering,
        guard_posts,
        ports,
        link,
        processors: (0..=highest_cpu).map(|_| Processor::default()).collect(),
        burner,
        stop: options.stop.flag(),
        gate: Gate::new(nodes.len()),
        ends: (0..system.nodes.len()).map(|node| is_lowered(node).then(OnceLock::new)).collect(),
        tally: Tally::new(system.inputs().len()),
        alarms: Mutex::default(),
        layout,
        keeps_answers: !value_log.all.is_empty() || keeps_posts,
        keeps_posts,
        kept_events,
    });
    let plan =
        ThreadPlan { system, options: &options, shared: &shared, nodes: &nodes, realtime, windows: &windows };
    let roles = if is_executed { plan.roles() } else { plan.stepped_roles() };
    let mut names: Vec<String> = roles.iter().map(|role| plan.name(*role)).collect();
    let mut first_ring = names.len();
    let rings_of = |node: usize| match is_lowered(node) {
        true => lowered::rings_of(system, node),
        false => hierarchy::rings_of(system, node),
    };
    names.extend(hierarchies.iter().flat_map(|node| rings_of(*node)));
    let first_poster = names.len();
    names.extend((0..room.posters).map(|poster| format!("post:{poster}")));
    let value_ring = (!value_log.all.is_empty() && hosted != Hosted::All).then(|| {
        names.push(keeping::THREAD.into());
        names.len() - 1
    });
    let of_values = value_ring.map_or(0, |_| {
        keeping::ring_records(system, value_log.all.iter().map(|kept| (kept.operation, kept.bytes)))
    });
    // The collector of a run of several processes is another process, of which nobody here knows what it wants.
    let wants_all = options.keep_log.is_some() || hosted != Hosted::All;
    let ring_records =
        options.ring_records.unwrap_or_else(|| ring_records(system, &shared, wants_all).max(of_values));
    let rings = (&names[..], ring_records);
    let kept: Vec<_> = value_log.all.iter().map(|kept| (kept.what, kept.operation)).collect();
    let say_kept = |metadata: &mut Metadata| {
        for (what, operation) in &kept {
            match what {
                Kept::Output(output) => metadata.outputs[output.index()].is_kept = true,
                Kept::Events => metadata.operations[operation.index()].keeps_events = true,
                Kept::Reads => metadata.operations[operation.index()].keeps_reads = true,
                Kept::Pushes(publication) => metadata.publications[publication.index()].is_kept = true,
            }
        }
    };
    // Where the collector writes values into its log, the rings have none, and whoever reads them is not to look for any.
    if value_ring.is_some() {
        say_kept(&mut metadata);
    }
    let mut store = Store::create(system, metadata, rings, &options, &hosted)?;
    say_kept(&mut store.metadata);
    // Who follows the rings may have asked for less.
    store.metadata.keeps_posts = keeps_posts;
    let CreatedThreads { threads, mut lane_members, stepped } =
        plan.create(&roles, store.rings(), inboxes, keepers)?;
    let mut others = threads.not_as_wanted();
    let mut hierarchy_nodes = Vec::new();
    for node in hierarchies {
        let count = rings_of(node).len();
        let rings = (first_ring..first_ring + count).map(|ring| store.rings().writer(ring)).collect();
        first_ring += count;
        let parts = HierarchyParts {
            system,
            node,
            metadata: &store.metadata,
            burner,
            tolerance: options.tolerance,
            judge: options.judge,
            leaving: &leaving[node],
            channels: channels.get(&node),
        };
        let lanes = lane_members.extract_if(.., |lane_member| lane_member.node == node).collect();
        let hierarchy_node =
            HierarchyNode::set_up(&parts, lowerings[node].as_ref(), (&plans[node], lanes), rings, &shared)
                .map_err(|source| unset(system, node, source))?;
        others.extend(hierarchy_node.not_as_wanted());
        hierarchy_nodes.push(hierarchy_node);
    }
    if options.rt == RtMode::Strict && !others.is_empty() {
        return Err(PrepareError::OtherAttributes { threads: others });
    }
    missing.extend(others);
    let dispatcher =
        open_dispatcher((system, plans), (room, first_poster), store.rings(), (&shared, replayed));
    if !bindings.is_empty() {
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| PrepareError::Events(error);
        let policy = if realtime { Policy::Fifo(options.band.top) } else { Policy::Other };
        let (workplace, refused) = dispatcher.workplace_with(policy).map_err(|error| failed(error.into()))?;
        missing.extend(refused.map(|error| format!("the thread for timers of channels: {error}")));
        let workplace: Arc<dyn Workplace> = Arc::new(workplace);
        bindings.into_iter().try_for_each(|bind| bind(Arc::clone(&workplace))).map_err(failed)?;
    }
    // Hierarchies have theirs.
    let by_lanes = |node: &usize| system.scheduling(*node) == Scheduling::Lanes;
    let told = channels.iter().filter(|(node, _)| is_executed && hosted.hosts(**node) && by_lanes(node));
    let controls: Vec<Control> =
        told.map(|(node, channels)| Control::of_channels(system, *node, channels)).collect();
    let closed = controls.iter().filter_map(Control::closed);
    missing.extend(closed.map(|why| format!("nobody else is told what its channels count: {why}")));
    let set_up = |bell| SteppedLanesSetUp { lanes: stepped, bell, shared: Arc::clone(&shared) };
    let stepped = stepper.map(set_up).filter(|stepped| !stepped.lanes.is_empty());
    missing.extend(store.unpublished.clone());
    missing.extend(without_bytes.into_iter().map(|why| why.to_string()));
    let keeping = match value_ring {
        Some(ring) => {
            let thread = value_log.start(store.rings().writer(ring)).map_err(PrepareError::Collector)?;
            ValueWriting::OwnThread(thread)
        }
        None => ValueWriting::Collector(value_log),
    };
    Ok(Prepared::new(
        Participants { threads, hierarchies: hierarchy_nodes, controls },
        (dispatcher, stepped, keeping),
        store,
        options,
        realtime,
        missing,
    ))
}

/// The way in for posted work, with the rings of posters from the first one on.
fn open_dispatcher(
    (system, plans): (&System, Vec<Plan>),
    (room, first_poster): (PostingRoom, usize),
    rings: &mut RingFile,
    (shared, replayed): (&Arc<Shared>, Option<ReplayWorkplace>),
) -> Dispatcher {
    let poster = |ring: usize| {
        // The program's thread runs wherever it likes.
        let recording = Recording::new(rings.writer(ring), 0, &[]);
        JobFlowSetUp::new(shared, recording)
    };
    let posters = (first_poster..first_poster + room.posters).map(poster).collect();
    Dispatcher::new(dispatcher::Inner {
        shared: Arc::clone(shared),
        system: system.clone(),
        definer: rings.definer(),
        room,
        state: Mutex::new(dispatcher::State {
            declared: Vec::new(),
            publications: ProgramPublications::of(system),
            posters,
        }),
        plans,
        replayed,
    })
}

/// Room for posted work, as asked for.
fn room_of(options: &RunOptions, plans: &[Plan], hosted: &Hosted) -> Result<PostingRoom, PrepareError> {
    let room = options.posting;
    let has_lanes = plans.iter().any(|plan| !plan.lanes.is_empty());
    if room != PostingRoom::default() && !(has_lanes && *hosted == Hosted::All) {
        return Err(PrepareError::NoLanesToPost);
    }
    let preemptive = plans.iter().flat_map(|plan| &plan.lanes).find(|lane| lane.rules.dispatch == Preemptive);
    match preemptive.filter(|_| options.stepped) {
        Some(lane) => Err(PrepareError::SteppedPreemptive { lane: lane.label.clone() }),
        None => Ok(room),
    }
}

/// How many instances of each operation of this process may be in flight.
fn choose_windows(system: &System, layout: &Layout, options: &RunOptions) -> Vec<usize> {
    let pace = |task: &Task| match task.trigger {
        None => Pace::Periodic(task.period),
        Some(_) => Pace::Sporadic(task.period),
    };
    let paces: Vec<Pace> = layout.local_operations().map(|site| pace(&system.tasks[site.task])).collect();
    window::choose(options.window, &paces, options.duration)
}

fn lower_nodes(
    system: &System,
    plans: &[Plan],
    options: &RunOptions,
    hosted: &Hosted,
) -> Result<Vec<(usize, NodeSettings)>, PrepareError> {
    let lower_node = |node: usize| {
        let description = &system.nodes[node];
        let lanes = match system.scheduling(node) {
            Scheduling::Lanes => &plans[node],
            // They have the hierarchy's priorities.
            Scheduling::Hierarchy => {
                release_is_above(options.band.top).map_err(|source| unset(system, node, source))?;
                &NO_LANES
            }
        };
        let lowering = lower(lanes, description.cpus.len(), options.band);
        let error = |source| PrepareError::Lowering { node: description.name.clone(), source };
        lowering.map(|lowering| (node, NodeSettings::Lanes(lowering))).map_err(error)
    };
    let has_lanes = |node: &usize| hosted.hosts(*node) && !plans[*node].lanes.is_empty();
    (0..system.nodes.len()).filter(has_lanes).map(lower_node).collect()
}

/// The processors that nodes of this process name must exist.
fn check_cpus(system: &System, hosted: &Hosted) -> Result<(), PrepareError> {
    let available = affinity::allowed()?;
    for (_, description) in system.nodes.iter().enumerate().filter(|(node, _)| hosted.hosts(*node)) {
        let missing: Vec<u16> =
            description.cpus.iter().copied().filter(|cpu| !available.contains(cpu)).collect();
        if !missing.is_empty() {
            return Err(PrepareError::MissingCpus { node: description.name.clone(), missing, available });
        }
    }
    Ok(())
}

/// What the process may do.
struct Privileges {
    realtime: bool,
    /// What was refused, with its remedy.
    missing: Vec<String>,
}

impl Privileges {
    /// Locks memory and tries a real-time thread, as far as the mode wants it.
    fn obtain(rt: RtMode, top: u8) -> Result<Self, PrepareError> {
        if rt == RtMode::Off {
            return Ok(Privileges { realtime: false, missing: Vec::new() });
        }
        let mut missing = Vec::new();
        if let Err(refused) = lock_all() {
            missing.push(refused.to_string());
        }
        let probe = spawn("probe", Policy::Fifo(top), &[], PROBE_STACK, || ());
        let realtime = match probe {
            Ok(thread) => {
                // The thread does nothing that could panic.
                let _ = thread.join();
                true
            }
            Err(refused) => {
                missing.push(refused.to_string());
                false
            }
        };
        if rt == RtMode::Strict && !missing.is_empty() {
            return Err(PrepareError::NotPermitted { missing });
        }
        Ok(Privileges { realtime, missing })
    }
}

const PROBE_STACK: usize = 64 * 1024;

fn open_ports(
    system: &System,
    layout: &Layout,
    (links, stepper): (&Links, Option<&Arc<Bell>>),
    (hosted, is_lowered): (&Hosted, impl Fn(usize) -> bool),
) -> (Vec<Option<Port>>, Inboxes) {
    let open = |site: &LaneSite| {
        let ours = site.lane.as_ref().filter(|_| hosted.hosts(site.node));
        let opened = ours.map(|lane| {
            let (sender, receiver) = links.inbox();
            let order = JobOrder::new(lane.discipline, lane.rules);
            let call = match system.scheduling(site.node) {
                Scheduling::Hierarchy if !is_lowered(site.node) => {
                    Call::Waker { waker: OnceLock::new(), order }
                }
                Scheduling::Lanes => {
                    stepper.map_or(Call::Bell(Bell::new()), |bell| Call::Stepper(Arc::clone(bell)))
                }
                Scheduling::Hierarchy => Call::Bell(Bell::new()),
            };
            (Port::new(sender, call), receiver)
        });
        opened.unzip()
    };
    layout.lanes.iter().map(open).unzip()
}

/// Both ends of the ways to guards, by node.
type GuardEnds = (Vec<Option<GuardPost>>, Vec<Option<GuardKeeper>>);

/// The ways to the guards of the nodes of this process, and what their release threads keep, by node.
fn open_guards(
    system: &System,
    guards: Vec<Guards>,
    links: &Links,
    hosted: &Hosted,
) -> Result<GuardEnds, PrepareError> {
    let is_external = |node: usize| {
        system
            .operations_on(node)
            .any(|operation| matches!(system.tasks[operation.task].trigger, Some(Trigger::External { .. })))
    };
    let open = |(node, guards): (usize, Guards)| {
        if !hosted.hosts(node) || guards.is_empty() {
            return Ok((None, None));
        }
        let (sender, inbox) = links.inbox();
        let summons = match is_external(node) {
            true => Summons::Descriptors(ReadySet::new().map_err(PrepareError::Descriptors)?),
            false => Summons::Bell(Bell::new()),
        };
        let post = GuardPost::new(sender, &guards, summons);
        let ready = RefCell::new(Vec::with_capacity(system.tasks.len()));
        let again = Vec::with_capacity(system.tasks.len());
        Ok((Some(post), Some(GuardKeeper { node, guards, inbox, ready, again })))
    };
    let opened: Result<Vec<_>, PrepareError> = guards.into_iter().enumerate().map(open).collect();
    Ok(opened?.into_iter().unzip())
}

fn open_link(system: &System, hosted: &Hosted, options: &RunOptions) -> Result<Option<Link>, PrepareError> {
    let Hosted::Node { node, directory } = hosted else {
        let imposes = options.links == crate::options::Links::Impose && !system.links.is_empty();
        return if imposes { Err(PrepareError::LinksWithinProcess) } else { Ok(None) };
    };
    let error = |source| PrepareError::Link { directory: directory.clone(), source };
    Link::open(system, directory, *node, options).map(Some).map_err(error)
}
