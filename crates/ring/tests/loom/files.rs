//! Models of what threads and processes share: rings, switches, directories, objects, lines of the clock.
//!
//! Loom runs each model under the interleavings that the C11 memory model allows *with at most two preemptions* (three for
//! rings); what a thread gives up of its own accord, by waiting for another one, does not count. Most faults of such
//! code need no more, but a model that passes is no proof.

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use talea_ring::slots::{Batch, Slots, WORDS};

const CAPACITY: usize = 2;

struct Ring {
    head: AtomicU64,
    words: Vec<AtomicU64>,
}

impl Ring {
    fn new() -> Self {
        let words = (0..CAPACITY * WORDS).map(|_| AtomicU64::new(0)).collect();
        Ring { head: AtomicU64::new(0), words }
    }

    fn slots(&self) -> Slots<'_, AtomicU64> {
        Slots::new(&self.head, &self.words)
    }
}

/// Record `n`, recognisable in each of its words.
fn record(n: u64) -> [u64; WORDS] {
    [n + 1; WORDS]
}

/// Reads once and checks that everything up to the cursor was delivered whole or counted.
fn read_and_check(ring: &Ring, cursor: &mut u64) -> Batch {
    let (mut out, before) = (Vec::new(), *cursor);
    let batch = ring.slots().read(cursor, CAPACITY, &mut out);
    assert_eq!(*cursor, before + batch.lost + batch.read as u64);
    let first = *cursor - batch.read as u64;
    for (found, n) in out.iter().zip(first..) {
        assert_eq!(*found, record(n), "record {n} is torn or in the wrong place");
    }
    batch
}

fn writer_against_reader(records: u64, reads: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let ring = Arc::new(Ring::new());
        let writer = {
            let ring = Arc::clone(&ring);
            loom::thread::spawn(move || (0..records).for_each(|n| ring.slots().write(n, record(n))))
        };
        let mut cursor = 0;
        for _ in 0..reads {
            read_and_check(&ring, &mut cursor);
        }
        writer.join().unwrap();
        while read_and_check(&ring, &mut cursor) != Batch::default() {}
        assert_eq!(cursor, records, "every record was delivered or counted");
    });
}

#[test]
fn a_reader_sees_whole_records_or_a_loss() {
    writer_against_reader(3, 1);
}

#[test]
fn a_reader_that_comes_back_continues_where_it_was() {
    writer_against_reader(4, 2);
}

mod streams {
    //! Consumers, switches and the directory.
    //!
    //! Loom's words are large, so the models share pages of only a few switches where they can; the code is the same.

    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;
    use talea_ring::control::{CONSUMERS, CONTROL_WORDS, Control, SwitchSet};
    use talea_ring::primitive::SharedWord;
    use talea_ring::region::Region;

    fn check(model: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.max_branches = 100_000;
        builder.check(model);
    }

    /// A word that is loom's where threads meet and plain where none do, so that exploring is feasible.
    enum Cell {
        Shared(AtomicU64),
        Alone(std::sync::atomic::AtomicU64),
    }

    impl talea_ring::primitive::Word for Cell {
        fn load(&self, order: std::sync::atomic::Ordering) -> u64 {
            match self {
                Cell::Shared(word) => word.load(order),
                Cell::Alone(word) => word.load(order),
            }
        }
        fn store(&self, value: u64, order: std::sync::atomic::Ordering) {
            match self {
                Cell::Shared(word) => word.store(value, order),
                Cell::Alone(word) => word.store(value, order),
            }
        }
        fn fence(order: std::sync::atomic::Ordering) {
            loom::sync::atomic::fence(order);
        }
    }

    macro_rules! change {
        ($($name:ident),*) => {
            $(fn $name(&self, value: u64, order: std::sync::atomic::Ordering) -> u64 {
                match self {
                    Cell::Shared(word) => word.$name(value, order),
                    Cell::Alone(word) => word.$name(value, order),
                }
            })*
        };
    }

    impl SharedWord for Cell {
        change!(fetch_or, fetch_and, fetch_add, swap);
        fn compare_exchange(
            &self,
            current: u64,
            new: u64,
            order: std::sync::atomic::Ordering,
        ) -> Result<u64, u64> {
            match self {
                Cell::Shared(word) => word.compare_exchange(current, new, order, Relaxed),
                Cell::Alone(word) => word.compare_exchange(current, new, order, Relaxed),
            }
        }
    }

    const SLOTS_AT: usize = 512;
    const SWITCHES_AT: usize = CONTROL_WORDS - talea_ring::control::SWITCHES;

    /// Control pages of which these words are contended.
    fn pages(shared: &[usize]) -> Arc<Vec<Cell>> {
        let cell = |index| match shared.contains(&index) {
            true => Cell::Shared(AtomicU64::new(0)),
            false => Cell::Alone(std::sync::atomic::AtomicU64::new(0)),
        };
        Arc::new((0..CONTROL_WORDS).map(cell).collect())
    }

    fn slot(index: usize) -> usize {
        SLOTS_AT + 8 * index
    }

    fn one(switch: usize) -> SwitchSet {
        let mut set = SwitchSet::default();
        set.insert(switch);
        set
    }

    fn alive(_: u64) -> bool {
        false
    }

    /// Two consumers that come at once get different slots, also where one slot was left by the dead, and nobody
    /// clears what the other has switched on.
    #[test]
    fn consumers_that_come_at_once_reap_the_dead_and_do_not_disturb_each_other() {
        const DEAD: u64 = 99;
        check(|| {
            let pages = pages(&[1, slot(0), slot(1), slot(2), SWITCHES_AT + 5]);
            let control = Control::new(&pages);
            let left = control.claim(DEAD, "", alive).unwrap();
            control.switch_on(left, &one(5));
            let come = |owner: u64| {
                let pages = Arc::clone(&pages);
                loom::thread::spawn(move || {
                    let control = Control::new(&pages);
                    let bit = control.claim(owner, "", |owner| owner == DEAD).unwrap();
                    control.switch_on(bit, &one(5));
                    bit
                })
            };
            let other = come(1);
            let mine = control.claim(2, "", |owner| owner == DEAD).unwrap();
            control.switch_on(mine, &one(5));
            let other = other.join().unwrap();
            assert_ne!(mine, other);
            assert_eq!(control.switches()[5].load(Relaxed), mine.mask() | other.mask());
            assert_eq!(control.consumers().len(), 2);
            assert!(control.consumers().len() < CONSUMERS);
        });
    }

    /// A thread takes a closed ring for drained only when all that was written there has been read.
    #[test]
    fn a_ring_that_is_drained_has_been_read() {
        use talea_ring::header::{HEADER_WORDS, Header};
        use talea_ring::slots::{Slots, WORDS};
        const STATE: usize = 0;
        const HEAD: usize = 32;
        const NOTED: usize = 64;
        const BEGUN: usize = 128;
        check(|| {
            let pages = pages(&[BEGUN, BEGUN + 1]);
            let cell = |index| match [STATE, HEAD, NOTED].contains(&index) {
                true => Cell::Shared(AtomicU64::new(0)),
                false => Cell::Alone(std::sync::atomic::AtomicU64::new(0)),
            };
            let header: Arc<Vec<Cell>> = Arc::new((0..HEADER_WORDS).map(cell).collect());
            let slots: Arc<Vec<Cell>> =
                Arc::new((0..2 * WORDS).map(|_| Cell::Shared(AtomicU64::new(0))).collect());
            let read = Arc::new(AtomicU64::new(0));
            let bit = Control::new(&pages).claim(1, "", alive).unwrap();
            // A first pass, so that the consumer is known to make them.
            let first = Control::new(&pages).begin_pass(bit);
            Control::new(&pages).finish_pass(bit, first);
            Header::new(&header).claim();
            Header::new(&header).open();
            let writer = {
                let (pages, header, slots) = (Arc::clone(&pages), Arc::clone(&header), Arc::clone(&slots));
                let read = Arc::clone(&read);
                loom::thread::spawn(move || {
                    let (control, header) = (Control::new(&pages), Header::new(&header));
                    Slots::new(header.head(), &slots).write(0, [1; WORDS]);
                    header.close(&control);
                    if header.is_drained(&control.passes_finished()) {
                        assert_eq!(read.load(Relaxed), 1, "it has not been read");
                    }
                })
            };
            let (control, mut cursor, mut records) = (Control::new(&pages), 0, Vec::new());
            let pass = control.begin_pass(bit);
            Slots::new(Header::new(&header).head(), &slots).read(&mut cursor, 2, &mut records);
            read.store(cursor, Relaxed);
            control.finish_pass(bit, pass);
            writer.join().unwrap();
        });
    }

    use talea_ring::primitive::Word;

    /// A consumer's slot, a family that is being registered by another thread, and where its only event's switch is.
    struct Registration {
        pages: Arc<Vec<Cell>>,
        directory: Arc<Vec<Cell>>,
        registrar: loom::thread::JoinHandle<()>,
    }

    const NEW: usize = 300;

    impl Registration {
        /// Registers what a process does when there is a consumer already, in a thread.
        fn begin(pages: &Arc<Vec<Cell>>) -> Self {
            let used = Cell::Shared(AtomicU64::new(0));
            let document = Cell::Alone(std::sync::atomic::AtomicU64::new(0));
            let directory = Arc::new(vec![used, document]);
            let registrar = {
                let directory = Arc::clone(&directory);
                loom::thread::spawn(move || Region::new(&directory).append(&[1; 8]))
            };
            Registration { pages: Arc::clone(pages), directory, registrar }
        }

        fn is_seen(&self) -> bool {
            !Region::new(&self.directory).read(0).unwrap().is_empty()
        }

        /// The family's switch, when it is registered.
        fn end(self) -> u64 {
            self.registrar.join().unwrap();
            Control::new(&self.pages).switches()[NEW].load(Relaxed)
        }
    }

    /// A family that is registered while a consumer begins to want everything is wanted, whoever comes first.
    #[test]
    fn no_new_family_escapes_a_consumer_of_everything() {
        check(|| {
            let pages = pages(&[SWITCHES_AT + NEW]);
            let control = Control::new(&pages);
            let bit = control.claim(1, "", alive).unwrap();
            let registration = Registration::begin(&pages);
            control.apply(bit, &SwitchSet::all());
            assert_eq!(registration.end(), bit.mask());
        });
    }

    /// A consumer of everything that leaves while a family is registered leaves no bit behind.
    #[test]
    fn a_consumer_that_leaves_during_registration_leaves_nothing_on() {
        check(|| {
            let pages = pages(&[SWITCHES_AT + NEW]);
            let control = Control::new(&pages);
            let bit = control.claim(1, "", alive).unwrap();
            control.apply(bit, &SwitchSet::all());
            let registration = Registration::begin(&pages);
            control.release(bit);
            assert_eq!(registration.end(), 0);
        });
    }

    /// A consumer of everything that chooses one family while this is registered keeps what it chose; if it comes too
    /// early to see it, it has nothing.
    #[test]
    fn a_family_chosen_during_its_registration_stays_on() {
        check(|| {
            let pages = pages(&[SWITCHES_AT + NEW]);
            let control = Control::new(&pages);
            let bit = control.claim(1, "", alive).unwrap();
            control.apply(bit, &SwitchSet::all());
            let registration = Registration::begin(&pages);
            let (chosen, expected) = match registration.is_seen() {
                true => (one(NEW), bit.mask()),
                false => (SwitchSet::default(), 0),
            };
            control.apply(bit, &chosen);
            assert_eq!(registration.end(), expected);
        });
    }

    /// Whoever reads the directory sees whole documents, in order.
    #[test]
    fn documents_appear_whole() {
        check(|| {
            let words: Arc<Vec<AtomicU64>> = Arc::new((0..5).map(|_| AtomicU64::new(0)).collect());
            // The reader is the other thread: loom forgets whom a store conflicts with when the storing thread has
            // itself read the word last, as a writer does.
            let reader = {
                let words = Arc::clone(&words);
                loom::thread::spawn(move || {
                    let first = Region::new(&words).read(0).unwrap();
                    assert!([0, 16, 32].contains(&first.len()));
                    let second = Region::new(&words).read(first.len()).unwrap();
                    let all = [first, second].concat();
                    let expected = [[1; 16], [2; 16]].concat();
                    assert_eq!(all, expected[..all.len()]);
                })
            };
            Region::new(&words).append(&[1; 16]);
            Region::new(&words).append(&[2; 16]);
            reader.join().unwrap();
        });
    }

    use talea_ring::line::{Line, Published};
    use talea_ring::object::{Copied, Update};

    /// A copy of an object is of one update, also where two threads replace it.
    #[test]
    fn objects_are_copied_whole() {
        check(|| {
            let words: Arc<Vec<AtomicU64>> = Arc::new((0..4).map(|_| AtomicU64::new(0)).collect());
            let writer = |value: u64| {
                let words = Arc::clone(&words);
                loom::thread::spawn(move || Copied::new(&words).replace(&[value; 2]))
            };
            let writers = [writer(1), writer(2)];
            if let Some((copy, updates)) = Copied::new(&words).copy() {
                assert_eq!((copy[0] == copy[1], updates > 0), (true, copy[0] > 0), "{copy:?}");
            }
            let done = writers.map(|writer| writer.join().unwrap());
            let object = Copied::new(&words);
            let (copy, updates) = object.copy().unwrap();
            let given_up = done.iter().filter(|update| **update == Update::GivenUp).count() as u64;
            assert_eq!((updates, object.given_up()), (2 - given_up, given_up));
            assert!(updates > 0 && copy[0] == copy[1]);
        });
    }

    /// A reader gets one line, whole, however often the refresher publishes meanwhile.
    #[test]
    fn lines_are_read_whole() {
        const LINE: fn(u64) -> Line = |n| Line { start: n, span: n, start_ns: n, rate: n };
        check(|| {
            let word = || AtomicU64::new(0);
            let places = || [word(), word(), word(), word()];
            let lines = Arc::new(Published::new(word(), [places(), places()]));
            let refresher = {
                let lines = Arc::clone(&lines);
                loom::thread::spawn(move || (1..=3).for_each(|n| lines.publish(LINE(n))))
            };
            let (line, ()) = lines.with(|| ());
            assert_eq!(line, LINE(line.start), "torn");
            refresher.join().unwrap();
            assert_eq!(lines.with(|| ()).0, LINE(3));
        });
    }
}
