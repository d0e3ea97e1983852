//! Programs beside a system: work that jobs and threads of it post, and a channel of its own whose consumers are served by several lanes.

use super::{micros, numbers, one_of};
use rand::{Rng, RngExt};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use talea_etcl::Filterable;
use talea_model::{OperationId, System};
use talea_notification::qos::{DiscardPolicy, OrderPolicy, QosSettings};
use talea_notification::{
    AdminProperties, ConnectedConsumer, ConsumerBuilder, ConsumerStatistics, Event, EventChannelFactory,
    EventType, Filter, Header, MappingFilter, Outcome, Supplier,
};
use talea_operation::{
    Declaration, JobContext, NotPosted, Operations, Post, Posted, PostedOperation, PostingRoom,
};
use talea_policy::strategy::Plan;
use talea_sim::{Simulation, SimulationError, VirtualWorkplace};
use talea_time::{Instant, Work};

/// What a program noted while it ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// By operation of posted work: the jobs of which the code was called, in that order.
    pub called: HashMap<OperationId, Vec<u64>>,
    /// By operation of posted work: the jobs that were posted.
    pub posted: HashMap<OperationId, Vec<u64>>,
    /// What was refused for want of room.
    pub refused: u64,
    /// By consumer: what it had, by the numbers of the events, and when.
    pub had: Vec<Vec<(u64, Instant)>>,
    /// The events that were pushed, by number: the value of their field in the header, and whether they may be delivered at once.
    pub pushed: Vec<(i64, bool)>,
}

type Shared = Arc<Mutex<Notes>>;

/// What is known of a consumer when the program has run.
#[derive(Clone, Debug)]
pub struct Consumed {
    /// Events of this value and greater ones do not come to it.
    pub below: i64,
    /// Whether it was called for one event at a time.
    pub is_serial: bool,
    /// Whether its events come in the order in which they were pushed.
    pub is_fifo: bool,
    /// The lanes that serve it.
    pub servers: u64,
    /// Those that wait for it.
    pub queued: usize,
    /// What it counted.
    pub statistics: ConsumerStatistics,
}

/// A program that has been set up beside a simulation.
pub struct Program {
    notes: Shared,
    consumers: Vec<(ConnectedConsumer, Consumed)>,
    _factory: EventChannelFactory,
}

impl Program {
    /// What it noted.
    pub fn notes(&self) -> Notes {
        self.notes.lock().expect("whole").clone()
    }

    /// What became of its consumers' events.
    pub fn consumed(&self) -> Vec<Consumed> {
        let of = |(consumer, known): &(ConnectedConsumer, Consumed)| Consumed {
            queued: consumer.queued(),
            statistics: consumer.statistics(),
            ..known.clone()
        };
        self.consumers.iter().map(of).collect()
    }
}

/// What pushes and posts, wherever that is done.
struct Acts {
    supplier: Supplier,
    notes: Shared,
    declared: Arc<OnceLock<Vec<PostedOperation>>>,
    /// What is posted goes to operations from this one on, so that it ends.
    from: usize,
    seed: u64,
    turn: u64,
}

impl Acts {
    /// One turn. Which choices are made depends on how many there were before.
    fn turn<P: Post>(&mut self, mut via: P) {
        let rng = &mut numbers(self.seed ^ self.turn.rotate_left(20));
        self.turn += 1;
        for _ in 0..one_of(rng, &[0, 1, 1, 2, 6]) {
            let to = self.from + rng.random_range(0..3);
            match self.declared.get().and_then(|declared| declared.get(to)).copied() {
                Some(operation) if rng.random_ratio(1, 2) => self.post(&mut via, operation, rng),
                _ => self.push(&mut via, rng),
            }
        }
    }

    fn post<P: Post>(&mut self, via: &mut P, operation: PostedOperation, rng: &mut impl Rng) {
        let own = rng.random_ratio(1, 2).then(|| micros(one_of(rng, &[0, 300, 8_000])));
        let deadline = own.map(|own| via.now() + own);
        let wcet = rng.random_ratio(1, 4).then(|| Work::from_micros(one_of(rng, &[20, 400, 3_000])));
        let number = via.post_work(Posted { deadline, wcet, ..Posted::new(operation).handle(self.turn) });
        let mut notes = self.notes.lock().expect("whole");
        match number {
            Ok(number) => notes.posted.entry(operation.id).or_default().push(number),
            Err(NotPosted::Full) => notes.refused += 1,
            // The last jobs end with the simulation.
            Err(NotPosted::NotRunning) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn push<P: Post>(&mut self, via: &mut P, rng: &mut impl Rng) {
        let (zone, priority) = (rng.random_range(0..4i64), rng.random_range(-2..3i16));
        let mut header = Header::new(EventType::new("Program", one_of(rng, &["A", "B"])));
        header.priority = Some(priority);
        header.timeout = rng.random_ratio(1, 6).then(|| micros(one_of(rng, &[400, 20_000])));
        header.start = rng.random_ratio(1, 8).then(|| via.now() + micros(3_000));
        header.fields.set("zone", zone).expect("it is small");
        let number = {
            let mut notes = self.notes.lock().expect("whole");
            notes.pushed.push((zone, header.start.is_none()));
            notes.pushed.len() as u64 - 1
        };
        let event = Event::new(header, Numbered { number });
        // Channels refuse what comes when all is full, which they count.
        self.supplier.push(via, &event).expect("it is what the channel takes");
    }
}

/// What events of a program carry.
#[derive(Filterable)]
struct Numbered {
    number: u64,
}

impl talea_notification::Content for Numbered {}

/// The simulation of `system` with a program of this seed beside it.
///
/// # Errors
/// Those of the simulation, or what is wrong with the program.
pub fn set_up(system: &System, plans: &[Plan], seed: u64) -> Result<(Simulation, Program), String> {
    let rng = &mut numbers(seed);
    let factory = EventChannelFactory::new();
    let channel = factory.create("program", &channel_qos(rng), AdminProperties::default());
    let channel = channel.map_err(|problems| format!("its channel: {problems}"))?;
    let notes = Shared::default();
    let declared: Arc<OnceLock<Vec<PostedOperation>>> = Arc::default();
    let mut suppliers = 0;
    let mut acts = |from: usize, seed: u64| {
        suppliers += 1;
        let supplier = channel.supplier(&format!("s{suppliers}")).connect().expect("it is a name of its own");
        let (notes, declared) = (Arc::clone(&notes), Arc::clone(&declared));
        Acts { supplier, notes, declared, from, seed, turn: 0 }
    };
    let consumers = (0..rng.random_range(1..=3))
        .map(|number| {
            let own = channel.consumer(&format!("c{number}"));
            let relay = rng.random_ratio(1, 4).then(|| acts(0, rng.random()));
            connect(own, number, relay, (system, plans), &notes, rng)
        })
        .collect::<Result<Vec<_>, String>>()?;
    notes.lock().expect("whole").had = vec![Vec::new(); consumers.len()];
    let mut operations = Operations::synthetic();
    for (index, operation) in system.operations().iter().enumerate() {
        let subtask = system.subtask(operation.id);
        let is_bare = subtask.outputs.is_empty() && subtask.inputs.is_empty() && subtask.events.is_empty();
        if is_bare && !system.takes_events(operation.id) && rng.random_ratio(1, 2) {
            let mut acts = acts(0, seed ^ index as u64);
            operations = operations.with(&operation.name, move |job: &JobContext<'_>| acts.turn(job));
        }
    }
    let posted = rng.random_range(1..=3);
    let (needed, jobs) = factory.needs();
    let jobs = one_of(rng, &[1, 4, 16]).max(jobs);
    let room = PostingRoom { operations: posted + needed, jobs, posters: 0 };
    let made = Simulation::with_posting(system, plans, operations, room);
    let (simulation, workplace) = made.map_err(|error: SimulationError| error.to_string())?;
    factory.bind(workplace.clone()).map_err(|error| format!("its channel: {error}"))?;
    let works = (0..posted).map(|place| {
        let mut acts = acts(place + 1, rng.random());
        let work = declaration(&format!("posted {place}"), (system, plans), rng);
        let notes = Arc::clone(&notes);
        let code = move |job: &JobContext<'_>| {
            let id = job.identity().0;
            notes.lock().expect("whole").called.entry(id).or_default().push(job.instance());
            acts.turn(job);
        };
        workplace.declare(work, code).map_err(|error| error.to_string())
    });
    let works = works.collect::<Result<Vec<_>, String>>()?;
    from_outside(&workplace, &works, acts(0, seed.rotate_left(9)), rng);
    declared.set(works).expect("once");
    Ok((simulation, Program { notes, consumers, _factory: factory }))
}

fn channel_qos(rng: &mut impl Rng) -> QosSettings {
    let qos = QosSettings::new();
    if rng.random_ratio(1, 3) { qos.timeout(micros(one_of(rng, &[2_000, 50_000]))) } else { qos }
}

/// What threads of the program do at instants.
fn from_outside(workplace: &VirtualWorkplace, works: &[PostedOperation], mut acts: Acts, rng: &mut impl Rng) {
    let gap = micros(one_of(rng, &[700, 3_000, 11_000]));
    workplace.call_at(Instant::ZERO + gap, move |poster| {
        let next = poster.now() + gap;
        acts.turn(poster);
        Some(next)
    });
    for _ in 0..rng.random_range(0..4) {
        let at = Instant::ZERO + micros(rng.random_range(0..300_000));
        use talea_operation::Workplace;
        workplace.post_at(at, one_of(rng, works));
    }
}

/// Work of this name in any lane.
pub(super) fn declaration(
    name: &str,
    (system, plans): (&System, &[Plan]),
    rng: &mut impl Rng,
) -> Declaration {
    let with_lanes: Vec<usize> = (0..plans.len()).filter(|node| !plans[*node].lanes.is_empty()).collect();
    let node = one_of(rng, &with_lanes);
    let deadline = micros(one_of(rng, &[500, 4_000, 30_000]));
    Declaration::new(name, deadline)
        .wcet(Work::from_micros(one_of(rng, &[1, 20, 150])))
        .node(&system.nodes[node].name)
        .lane(rng.random_range(0..plans[node].lanes.len()))
}

fn connect(
    consumer: ConsumerBuilder,
    number: usize,
    mut relay: Option<Acts>,
    place: (&System, &[Plan]),
    notes: &Shared,
    rng: &mut impl Rng,
) -> Result<(ConnectedConsumer, Consumed), String> {
    let below = one_of(rng, &[2, 4, 4]);
    let (mut consumer, mut lanes) = (consumer, 0);
    let mut work = |rng: &mut _| {
        lanes += 1;
        declaration(&format!("c{number} lane {lanes}"), place, rng)
    };
    consumer = consumer.lane_from(i16::MIN, work(rng));
    let mut is_alone = true;
    for _ in 0..one_of(rng, &[0, 0, 1, 2]) {
        consumer = consumer.server(work(rng));
        is_alone = false;
    }
    if rng.random_ratio(1, 3) {
        consumer = consumer.lane_from(0, work(rng));
        is_alone = false;
        if rng.random_ratio(1, 2) {
            consumer = consumer.server(work(rng));
        }
    }
    if below < 4 {
        let filter = Filter::parse::<Numbered>(&[], &format!("$.header.variable_header(zone) < {below}"));
        consumer = consumer.filter(filter.map_err(|error| error.to_string())?);
    }
    let is_mapped = rng.random_ratio(1, 4);
    if is_mapped {
        let lowered =
            MappingFilter::new().with(&[], |event: &Event| Ok(event.header().priority > Some(0)), -1);
        consumer = consumer.map_priority(lowered);
    }
    let orders = [OrderPolicy::Fifo, OrderPolicy::Fifo, OrderPolicy::Priority, OrderPolicy::Deadline];
    let discards = [DiscardPolicy::Fifo, DiscardPolicy::Lifo, DiscardPolicy::Priority];
    let order = one_of(rng, &orders);
    let qos = QosSettings::new().order(order).discard(one_of(rng, &discards));
    consumer = consumer.qos(qos.max_events(one_of(rng, &[1, 3, 20])));
    let own = Arc::clone(notes);
    let note = move |event: &Event, now: Instant| {
        let Numbered { number: event } = *event.content().expect("events of programs are numbered");
        own.lock().expect("whole").had[number].push((event, now));
    };
    let is_serial = relay.is_some() || rng.random_ratio(1, 2);
    let connected = match is_serial {
        true => consumer.connect_with_job(move |delivery, job| {
            note(delivery.event(), job.now());
            if let Some(acts) = &mut relay
                && acts.turn < 400
            {
                acts.turn(job);
            }
            Outcome::Ok
        }),
        false => consumer.connect_concurrent(move |delivery, job| {
            note(delivery.event(), job.now());
            Outcome::Ok
        }),
    };
    let connected = connected.map_err(|error| error.to_string())?;
    let is_fifo = order == OrderPolicy::Fifo && is_alone;
    let (queued, statistics) = (0, ConsumerStatistics::default());
    Ok((connected, Consumed { below, is_serial, is_fifo, servers: lanes, queued, statistics }))
}
