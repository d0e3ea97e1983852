//! The process that starts the others, gives the start, and makes one report of all.

use super::agreement::Agreement;
use super::departures::Departures;
use super::wire::{DIRECTORY_VARIABLE, FromMember, NODE_VARIABLE, ToMember, control_of, receive, send};
use crate::collector::Collector;
use crate::error::PrepareError;
use crate::hierarchy::leaving;
use crate::hierarchy_node::plan_lowering;
use crate::options::{LostNodes, RunOptions, Start, StopHandle};
use crate::outcome::{LostNode, Outcome, Stopped};
use crate::plans::{check_apart, metadata, plans};
use crate::run::{Ended, outcome};
use crate::store::{COLLECTOR, rings_of, temporary_directory};
use std::io::{self, BufRead, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use talea_linux::clock::MonotonicClock;
use talea_linux::sched::Raised;
use talea_model::System;
use talea_operation::LostValues;
use talea_record::TraceFile;
use talea_record::stream::{AttachError, Consumer, Selection, Start as FromWhere};
use talea_time::{Clock, Duration, Instant};
use talea_transport::Peer;
use thiserror::Error;

/// Why a run of several processes did not come about. All members have been ended.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// The system cannot be prepared on any process, or the run's directory could not be made.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The control socket or the pipes could not be made.
    #[error("cannot set up the connections between the nodes: {0}")]
    Setup(#[source] io::Error),
    /// A member's command could not be started.
    #[error("cannot start the process of node \"{node}\": {source}")]
    Start {
        /// The node.
        node: String,
        /// What the system said.
        source: io::Error,
    },
    /// A member ended before it was ready.
    #[error("the process of node \"{node}\" ended before it was ready: {how}")]
    Ended {
        /// The node.
        node: String,
        /// Its exit status or signal.
        how: String,
    },
    /// A member could not prepare its node.
    #[error("node \"{node}\": {message}")]
    Refused {
        /// The node.
        node: String,
        /// Why, with a remedy.
        message: String,
    },
    /// A member has read another system, or was given other options.
    #[error(
        "the process of node \"{node}\" runs another system or other options than this one: {difference}; was the system \
         file changed while the run was starting?"
    )]
    Differs {
        /// The node.
        node: String,
        /// The first difference.
        difference: String,
    },
    /// Members did not get ready in time.
    #[error("nodes {nodes} were not ready within {within}")]
    NotReady {
        /// The nodes.
        nodes: String,
        /// How long the coordinator waited.
        within: Duration,
    },
    /// The rings of a member could not be opened.
    #[error("the trace of node \"{node}\": {source}")]
    Rings {
        /// The node.
        node: String,
        /// What is wrong with it.
        source: AttachError,
    },
    /// The run was stopped before it began.
    #[error("the run was stopped before all nodes were ready")]
    Stopped,
}

/// How long members may take until they are ready.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How long a member may take to end after it was told, or after the planned end.
const END_WITHIN: Duration = Duration::from_secs(10);
/// How long a member that has finished may take to be gone.
const CLEAR_UP_WITHIN: Duration = Duration::from_secs(2);
const CLEAR_UP_LOOK: std::time::Duration = std::time::Duration::from_millis(1);
/// How often the coordinator looks for a stop.
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);

/// Runs every node of `system` in a process of its own, started by `command` (which is given the node's name
/// and is completed here), until the planned duration is over, `options.stop` is used, or a member ends early.
///
/// Standard input and output of the members are closed off; their standard error stays connected.
///
/// # Errors
/// See [`ClusterError`]. Once the run has begun, the end of a member is no error but part of the outcome.
pub fn run_cluster(
    system: &System,
    options: &RunOptions,
    command: impl FnMut(&str) -> Command,
) -> Result<Outcome, ClusterError> {
    let executed = system.with_threads_as_tasks();
    let plans = plans(&executed)?;
    check_apart(&executed)?;
    let directory = temporary_directory()?;
    let mut members = Members::start(system, directory.path(), command)?;
    members.await_ready(&options.stop, &Agreement::of(system, options))?;

    let realtime = members.all.iter().all(|member| member.ready.as_ref().is_some_and(|ready| ready.realtime));
    // Each member has decided for itself, by the same rules.
    let lowerings: Vec<_> =
        (0..executed.nodes.len()).map(|node| plan_lowering(&executed, node, options)).collect();
    // From here on the start comes nearer; and who is told first may begin before all others are told.
    let raised = realtime.then(|| Raised::to(options.band.top)).flatten();
    let start = match options.start {
        Start::After(delay) => MonotonicClock.now().saturating_add(delay),
        Start::At(instant) => instant,
    };
    let is_lowered =
        |node: usize| lowerings[node].as_ref().is_some_and(|lowering| lowering.settings.is_some());
    let leaving = leaving(&executed, &plans, options.slicing, is_lowered);
    let judging = (&lowerings[..], options.tolerance);
    let mut metadata = metadata(&executed, &plans, realtime, start, judging, &leaving)?;
    let kept = options.keep_values.among(&executed).map_err(PrepareError::from)?;
    for (entry, is_kept) in metadata.outputs.iter_mut().zip(kept.outputs) {
        entry.is_kept = is_kept;
    }
    let of_operations = kept.events.into_iter().zip(kept.reads);
    for (entry, (keeps_events, keeps_reads)) in metadata.operations.iter_mut().zip(of_operations) {
        (entry.keeps_events, entry.keeps_reads) = (keeps_events, keeps_reads);
    }
    for (entry, is_kept) in metadata.publications.iter_mut().zip(kept.pushes) {
        entry.is_kept = is_kept;
    }
    let rings = members.rings(directory.path(), &options.collected(&executed))?;
    let log = options.keep_log.clone();
    let collector = Collector::new(metadata, (rings, None), options.samples(), log.as_deref(), None)
        .map_err(PrepareError::from)?;
    let collecting = collector.start(log).map_err(PrepareError::Collector)?;
    let planned_end = options.duration.map_or(Instant::MAX, |duration| start.saturating_add(duration));
    let mut ended = members.run((start, planned_end), raised, options, directory.path());
    let place = |lost: &LostValues| executed.inputs().iter().position(|input| input.name == lost.input);
    ended.mishaps.lost_values.sort_by_key(place);
    let missing = members.missing();
    members.let_end();
    // No member writes any more once all processes are gone.
    drop(members);
    let collected = collecting.finish();
    Ok(outcome(ended, collected, realtime, missing))
}

/// What a member said when it was ready.
struct Ready {
    realtime: bool,
    epoch: u64,
    missing: Vec<String>,
    threads: Vec<crate::outcome::ThreadAttributes>,
}

struct Member {
    node: String,
    process: Child,
    control: Option<UnixStream>,
    ready: Option<Ready>,
    /// It has said that it finished, or is lost.
    over: bool,
}

/// What a member's connection brought; `None` at its end.
type FromAnyMember = (usize, Option<FromMember>);

/// A connection whose first message is not whole yet. It does not block.
struct PendingConnection {
    stream: UnixStream,
    from: BufReader<UnixStream>,
    /// What it has said so far.
    line: Vec<u8>,
}

/// What a connection has said.
enum FirstMessage {
    Incomplete,
    Whole(FromMember),
    Closed,
}

impl PendingConnection {
    fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let from = BufReader::new(stream.try_clone()?);
        Ok(PendingConnection { stream, from, line: Vec::new() })
    }

    /// Reads what there is.
    fn first_message(&mut self) -> io::Result<FirstMessage> {
        match self.from.read_until(b'\n', &mut self.line) {
            Ok(_) if self.line.is_empty() => Ok(FirstMessage::Closed),
            Ok(_) => Ok(FirstMessage::Whole(serde_json::from_slice(&self.line)?)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(FirstMessage::Incomplete),
            Err(error) => Err(error),
        }
    }
}

/// The processes of a run. Dropping it kills those that are left.
struct Members {
    all: Vec<Member>,
    listener: UnixListener,
    pending: Vec<PendingConnection>,
    news: Receiver<FromAnyMember>,
    tell: Sender<FromAnyMember>,
}

impl Drop for Members {
    fn drop(&mut self) {
        for member in &mut self.all {
            // A process that has ended cannot be killed, which is as well.
            let _ = member.process.kill();
            let _ = member.process.wait();
        }
    }
}

impl Members {
    /// Gives members that have finished the time to clear up behind themselves.
    fn let_end(&mut self) {
        let until = MonotonicClock.now() + CLEAR_UP_WITHIN;
        let ended = |member: &mut Member| !matches!(member.process.try_wait(), Ok(None));
        while !self.all.iter_mut().all(ended) && MonotonicClock.now() < until {
            std::thread::sleep(CLEAR_UP_LOOK);
        }
    }

    fn start(
        system: &System,
        directory: &Path,
        mut command: impl FnMut(&str) -> Command,
    ) -> Result<Self, ClusterError> {
        talea_transport::pipe::create(directory, system.nodes.len())
            .map_err(|errno| ClusterError::Setup(errno.into()))?;
        let listener = UnixListener::bind(control_of(directory)).map_err(ClusterError::Setup)?;
        listener.set_nonblocking(true).map_err(ClusterError::Setup)?;
        let (tell, news) = mpsc::channel();
        let mut members = Members { all: Vec::new(), listener, pending: Vec::new(), news, tell };
        for node in &system.nodes {
            let process = command(&node.name)
                .env(DIRECTORY_VARIABLE, directory)
                .env(NODE_VARIABLE, &node.name)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .process_group(0)
                .spawn()
                .map_err(|source| ClusterError::Start { node: node.name.clone(), source })?;
            let node = node.name.clone();
            members.all.push(Member { node, process, control: None, ready: None, over: false });
        }
        Ok(members)
    }

    /// Waits until every member has connected and is ready.
    fn await_ready(&mut self, stop: &StopHandle, agreement: &Agreement) -> Result<(), ClusterError> {
        let until = MonotonicClock.now() + READY_WITHIN;
        while self.all.iter().any(|member| member.ready.is_none()) {
            if stop.is_stopped() {
                return Err(ClusterError::Stopped);
            }
            if MonotonicClock.now() > until {
                let late = self.all.iter().filter(|member| member.ready.is_none());
                let nodes = late.map(|member| format!("\"{}\"", member.node)).collect::<Vec<_>>().join(", ");
                return Err(ClusterError::NotReady { nodes, within: READY_WITHIN });
            }
            self.accept(agreement)?;
            match self.news.recv_timeout(LOOK) {
                Ok((node, Some(FromMember::Ready { realtime, epoch, missing, threads }))) => {
                    self.all[node].ready = Some(Ready { realtime, epoch, missing, threads });
                }
                Ok((node, Some(FromMember::Failed { message }))) => {
                    return Err(ClusterError::Refused { node: self.all[node].node.clone(), message });
                }
                Ok((node, _)) => return Err(self.ended(node)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("this process holds a sender"),
            }
            let gone = self.all.iter_mut().position(|member| {
                member.control.is_none() && matches!(member.process.try_wait(), Ok(Some(_)))
            });
            if let Some(node) = gone {
                // It may have connected and said why before it ended.
                self.accept(agreement)?;
                if self.all[node].control.is_none() {
                    return Err(self.ended(node));
                }
            }
        }
        Ok(())
    }

    /// Takes the connections that have come in, and the greetings that are whole. Never waits: a process
    /// that connects and says nothing holds up neither a stop nor the time limit.
    fn accept(&mut self, expected: &Agreement) -> Result<(), ClusterError> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    self.pending.push(PendingConnection::new(stream).map_err(ClusterError::Setup)?)
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(ClusterError::Setup(error)),
            }
        }
        for mut connection in std::mem::take(&mut self.pending) {
            match connection.first_message().map_err(ClusterError::Setup)? {
                FirstMessage::Incomplete => self.pending.push(connection),
                FirstMessage::Whole(FromMember::Hello { node, agreement }) if node < self.all.len() => {
                    if let Some(difference) = expected.difference(&agreement) {
                        let node = self.all[node].node.clone();
                        return Err(ClusterError::Differs { node, difference });
                    }
                    self.welcome(node, connection).map_err(ClusterError::Setup)?;
                }
                FirstMessage::Whole(_) | FirstMessage::Closed => {}
            }
        }
        Ok(())
    }

    /// Listens to what a member says from now on.
    fn welcome(&mut self, node: usize, connection: PendingConnection) -> io::Result<()> {
        let PendingConnection { stream, mut from, .. } = connection;
        stream.set_nonblocking(false)?;
        self.all[node].control = Some(stream);
        let tell = self.tell.clone();
        std::thread::spawn(move || {
            // What cannot be understood ends the connection like its end does.
            while let Ok(Some(message)) = receive(&mut from) {
                if tell.send((node, Some(message))).is_err() {
                    return;
                }
            }
            let _ = tell.send((node, None));
        });
        Ok(())
    }

    /// Follows the rings of all members.
    fn rings(&self, directory: &Path, wanted: &Selection) -> Result<Vec<Consumer>, ClusterError> {
        let attached = self.all.iter().enumerate().map(|(index, member)| {
            TraceFile::attach(&rings_of(directory, index), COLLECTOR, wanted, FromWhere::Oldest)
                .map_err(|source| ClusterError::Rings { node: member.node.clone(), source })
        });
        attached.collect()
    }

    /// Gives the start and waits until every member has finished or is lost.
    fn run(
        &mut self,
        (start, planned_end): (Instant, Instant),
        raised: Option<Raised>,
        options: &RunOptions,
        directory: &Path,
    ) -> Ended {
        self.tell_all(ToMember::Start { at_ns: start.as_nanos() });
        drop(raised);
        let threads = self.all.iter_mut().filter_map(|member| member.ready.as_mut());
        let threads = threads.flat_map(|ready| std::mem::take(&mut ready.threads)).collect();
        let mut ended = Ended {
            stopped: Stopped::Completed,
            threads,
            spin: Vec::new(),
            mishaps: Default::default(),
            hierarchies: Vec::new(),
        };
        let mut give_up = planned_end.saturating_add(END_WITHIN);
        let (mut told, mut departures) = (false, Departures::default());
        while self.all.iter().any(|member| !member.over) {
            departures.tell(directory);
            let failed = !ended.mishaps.lost_nodes.is_empty() && options.lost_nodes == LostNodes::EndRun;
            if !told && (options.stop.is_stopped() || failed) {
                self.tell_all(ToMember::Stop);
                give_up = MonotonicClock.now() + END_WITHIN;
                told = true;
            }
            if MonotonicClock.now() > give_up {
                self.give_up(start, &mut ended);
                break;
            }
            if let Ok((node, message)) = self.news.recv_timeout(LOOK) {
                let lost = ended.mishaps.lost_nodes.len();
                self.note(node, message, start, &mut ended);
                if ended.mishaps.lost_nodes.len() > lost {
                    let left = self.all.iter().enumerate().filter(|(_, member)| !member.over);
                    departures.add(self.peer(node), left.map(|(other, _)| other));
                }
            }
        }
        if told && ended.stopped == Stopped::Completed {
            ended.stopped = Stopped::Interrupted;
        }
        ended
    }

    /// A member as the others know it.
    fn peer(&self, node: usize) -> Peer {
        let epoch = self.all[node].ready.as_ref().expect("the run has begun").epoch;
        Peer { node: node as u16, epoch }
    }

    fn note(&mut self, node: usize, message: Option<FromMember>, start: Instant, ended: &mut Ended) {
        match message {
            Some(FromMember::Finished { stopped, spin, mishaps, hierarchies }) => {
                ended.hierarchies.extend(hierarchies);
                self.all[node].over = true;
                ended.stopped = match (ended.stopped, stopped) {
                    (Stopped::Failed, _) | (_, Stopped::Failed) => Stopped::Failed,
                    (Stopped::Interrupted, _) | (_, Stopped::Interrupted) => Stopped::Interrupted,
                    (Stopped::Completed, Stopped::Completed) => Stopped::Completed,
                };
                ended.spin.extend(spin);
                ended.mishaps.overflows += mishaps.overflows;
                ended.mishaps.late_signals += mishaps.late_signals;
                ended.mishaps.bound_overruns += mishaps.bound_overruns;
                let overruns = [ended.mishaps.worst_overrun.take(), mishaps.worst_overrun];
                ended.mishaps.worst_overrun =
                    overruns.into_iter().flatten().rev().max_by_key(|overrun| overrun.late_ns);
                ended.mishaps.unsent += mishaps.unsent;
                ended.mishaps.to_left += mishaps.to_left;
                ended.mishaps.lost_on_links += mishaps.lost_on_links;
                ended.mishaps.unheld += mishaps.unheld;
                ended.mishaps.values_unsent += mishaps.values_unsent;
                ended.mishaps.values_unread += mishaps.values_unread;
                ended.mishaps.values_unkept += mishaps.values_unkept;
                ended.mishaps.late_values += mishaps.late_values;
                ended.mishaps.triggers_refused += mishaps.triggers_refused;
                ended.mishaps.early_arrivals.extend(mishaps.early_arrivals);
                ended.mishaps.ended_descriptors.extend(mishaps.ended_descriptors);
                // Of one input the sender tells what links lost, and the receiver the rest.
                mishaps.lost_values.into_iter().for_each(|lost| lost.add_to(&mut ended.mishaps.lost_values));
                ended.mishaps.slow_messages += mishaps.slow_messages;
                ended.mishaps.slowest_excess_ns =
                    ended.mishaps.slowest_excess_ns.max(mishaps.slowest_excess_ns);
                ended.mishaps.late_begin_ns = ended.mishaps.late_begin_ns.max(mishaps.late_begin_ns);
                ended.mishaps.slot_shortages += mishaps.slot_shortages;
                ended.mishaps.panics.extend(mishaps.panics);
            }
            None if !self.all[node].over => {
                self.all[node].over = true;
                let after_ns = (MonotonicClock.now() - start).as_nanos();
                let lost =
                    LostNode { node: self.all[node].node.clone(), how: self.how_it_ended(node), after_ns };
                ended.mishaps.lost_nodes.push(lost);
            }
            _ => {}
        }
    }

    /// The members that are left do not end: they are killed with this process's handle on them.
    fn give_up(&mut self, start: Instant, ended: &mut Ended) {
        let after_ns = (MonotonicClock.now() - start).as_nanos();
        for member in self.all.iter_mut().filter(|member| !member.over) {
            let _ = member.process.kill();
            let how = format!("did not end within {END_WITHIN} and was killed");
            ended.mishaps.lost_nodes.push(LostNode { node: member.node.clone(), how, after_ns });
        }
    }

    fn tell_all(&mut self, message: ToMember) {
        for member in self.all.iter_mut().filter(|member| !member.over) {
            if let Some(control) = &mut member.control {
                // A member that is gone is noticed by the end of its connection.
                let _ = send(control, &message);
            }
        }
    }

    fn missing(&self) -> Vec<String> {
        let of = |member: &Member| {
            let missing = member.ready.iter().flat_map(|ready| &ready.missing);
            missing.map(|missing| format!("node \"{}\": {missing}", member.node)).collect::<Vec<_>>()
        };
        self.all.iter().flat_map(of).collect()
    }

    fn ended(&mut self, node: usize) -> ClusterError {
        let how = self.how_it_ended(node);
        ClusterError::Ended { node: self.all[node].node.clone(), how }
    }

    /// The exit status of a member whose connection has ended. One that still runs without its
    /// connection has no way back and is killed.
    fn how_it_ended(&mut self, node: usize) -> String {
        let process = &mut self.all[node].process;
        let until = MonotonicClock.now() + Duration::from_secs(1);
        while MonotonicClock.now() < until {
            if let Ok(Some(status)) = process.try_wait() {
                return describe(status);
            }
            std::thread::sleep(LOOK);
        }
        let _ = process.kill();
        "closed its connection and was killed".into()
    }
}

fn describe(status: ExitStatus) -> String {
    if status.success() { "ended of its own accord".into() } else { status.to_string() }
}
