//! The control pages of a ring file: who wants what.
//!
//! ```text
//! word
//!    0  the process that writes the rings, as an owner (see below); 0 while it is being created
//!    1  the recorder that the process was started by and waits for, as an owner; 0: none
//!    2  events that found no ring
//!    3  1 when the stream has ended
//!    4  the instant from which arrivals of the run count, in nanoseconds; 0 until that is known
//!    5  1 when that recorder follows the stream, or has said that it will not
//!    6  bytes of the directory by which that recorder has chosen; all ones: what is added changes nothing for it
//!    7  rings beyond those from the beginning that have ever been used
//!  128  passes: for each of 64 slots the last pass over the rings that was begun, and the last that was finished
//!  512  consumers: 64 slots of 8 words: owner (0: free), then 7 words of name
//! 1024  switches: a word for each event and passive entity; bit c is set while consumer c wants it
//! ```
//! An event is written while its switch is not 0. Bits 0 to 62 belong to the consumers in the slots of these numbers,
//! bit 63 to the [`OPERATOR`], who switches and goes away. The last [`ASK_WORDS`] switches have all bits set and
//! belong to no event: events that are not registered yet look there.
//!
//! **Owners.** An owner is a process number and the instant the process started, so that it cannot be taken for a
//! later process of the same number. A consumer that was killed leaves its slot owned by the dead; whoever comes next
//! takes the slot over *first*, by one compare-and-exchange, and clears its bits *then*. So a slot is cleared by the
//! one process that owns it, and a reaper that dies over its work leaves what it found: a slot owned by the dead.
//!
//! **Passes.** A consumer that copies everything that the rings hold into memory of its own numbers these passes. The writer of a
//! ring that is closed notes which pass each consumer has begun; a later one has found all that was in the ring:
//!
//! ```text
//! writer                          consumer, pass n
//! 1 records of the ring           a begun = n
//! 2 fence(SeqCst)                 b fence(SeqCst)
//! 3 noted = begun                 c reads the rings
//!                                 d finished = n
//! ```
//! Where (3) noted less than `n`, (2) comes before (b) in the one order of such fences, or (3) would have seen (a); so (c) finds
//! everything from (1). A ring is read when `finished > noted`.
//!
//! **Everything, also later.** A consumer that wants all events sets its bit in *all* switches, also in those that no
//! family has yet: one that is registered later finds its switches on. So only the owner of a bit ever changes it, and
//! registering a family touches no switch; nothing has to be agreed on between the two.

use crate::primitive::SharedWord;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

/// Words of the control pages.
pub const CONTROL_WORDS: usize = SWITCHES_AT + SWITCHES;
/// Slots for consumers.
pub const CONSUMERS: usize = 63;
/// The bit of whoever switches from outside without staying.
pub const OPERATOR: Bit = Bit(63);
/// Words that switches stand in.
pub const SWITCHES: usize = 2048;
/// Switches at the end whose bits are always set.
pub const ASK_WORDS: usize = 256;
/// Switches that events and passive entities can have.
pub const ASSIGNABLE: usize = SWITCHES - ASK_WORDS;
/// First switch of the words at the end.
pub const ASK: usize = ASSIGNABLE;

const WRITER: usize = 0;
const UNRINGED: usize = 2;
const ENDED: usize = 3;
const RUN_START: usize = 4;
const ANNOUNCED: usize = 1;
const ATTENDED: usize = 5;
const CHOSEN_BY: usize = 6;
const LATER_RINGS: usize = 7;
const PASSES_AT: usize = 128;
const CONSUMERS_AT: usize = 512;
const CONSUMER_WORDS: usize = 8;
/// First word of the switches.
pub const SWITCHES_AT: usize = 1024;
/// Bytes of a consumer's name.
const NAME_BYTES: usize = (CONSUMER_WORDS - 1) * 8;

/// Who wants an event: the number of a bit in a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bit(u32);

impl Bit {
    /// The consumer with slot `slot`.
    const fn of_slot(slot: usize) -> Self {
        assert!(slot < CONSUMERS);
        Bit(slot as u32)
    }

    /// The bit itself.
    pub const fn mask(self) -> u64 {
        1 << self.0
    }

    const fn slot(self) -> usize {
        self.0 as usize
    }
}

/// A choice among all switches there can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchSet([u64; SWITCHES / 64]);

impl Default for SwitchSet {
    fn default() -> Self {
        SwitchSet([0; SWITCHES / 64])
    }
}

impl SwitchSet {
    /// Whether `switch` is in the set.
    pub fn contains(&self, switch: usize) -> bool {
        self.0[switch / 64] >> (switch % 64) & 1 == 1
    }

    /// Puts `switch` into the set.
    ///
    /// # Panics
    /// If it is no switch that an event can have.
    pub fn insert(&mut self, switch: usize) {
        assert!(switch < ASSIGNABLE, "switch {switch}");
        self.0[switch / 64] |= 1 << (switch % 64);
    }

    /// Every switch that an event can have, also one that is not registered yet.
    pub fn all() -> Self {
        (0..ASSIGNABLE).collect()
    }

    /// What is in this or in `other`.
    pub fn or(&self, other: &Self) -> Self {
        SwitchSet(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// What is in this and not in `other`.
    pub fn without(&self, other: &Self) -> Self {
        SwitchSet(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    fn complement(&self) -> Self {
        SwitchSet(self.0.map(|word| !word))
    }
}

impl FromIterator<usize> for SwitchSet {
    /// # Panics
    /// As [`Self::insert`].
    fn from_iter<I: IntoIterator<Item = usize>>(switches: I) -> Self {
        let mut set = SwitchSet::default();
        switches.into_iter().for_each(|switch| set.insert(switch));
        set
    }
}

/// The control pages in memory.
#[derive(Debug)]
pub struct Control<'a, W> {
    words: &'a [W],
}

impl<'a, W: SharedWord> Control<'a, W> {
    /// Control pages in these [`CONTROL_WORDS`] words, all 0 at first.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn new(words: &'a [W]) -> Self {
        Control { words: &words[..CONTROL_WORDS] }
    }

    /// Makes `writer` the owner of the stream and prepares the words that are always set. The first thing done.
    pub fn initialise(&self, writer: u64) {
        self.switches()[ASK..].iter().for_each(|word| word.store(u64::MAX, Relaxed));
        self.words[WRITER].store(writer, Release);
    }

    /// The process that writes.
    pub fn writer(&self) -> u64 {
        self.words[WRITER].load(Relaxed)
    }

    /// The switches, by number.
    pub fn switches(&self) -> &'a [W] {
        &self.words[SWITCHES_AT..]
    }

    /// Counts an event that found no ring.
    pub fn count_unringed(&self) {
        self.words[UNRINGED].fetch_add(1, Relaxed);
    }

    /// Events that found no ring.
    pub fn unringed(&self) -> u64 {
        self.words[UNRINGED].load(Relaxed)
    }

    /// The stream is over: every thread that still writes is to look at [`Self::has_ended`].
    pub fn end(&self) {
        self.words[ENDED].store(1, Relaxed);
        self.switches().iter().for_each(|word| word.store(u64::MAX, Relaxed));
    }

    /// Tells from which instant arrivals of the run count, in nanoseconds.
    pub fn set_run_start(&self, start_ns: i64) {
        self.words[RUN_START].store(start_ns as u64, Relaxed);
    }

    /// The instant from which arrivals of the run count, if it is known.
    pub fn run_start(&self) -> Option<i64> {
        let start = self.words[RUN_START].load(Relaxed);
        (start != 0).then_some(start as i64)
    }

    /// Whether the stream is over.
    pub fn has_ended(&self) -> bool {
        self.words[ENDED].load(Relaxed) != 0
    }

    /// The process waits for `recorder`, an owner, before it goes on. Said before anybody can find the stream.
    pub fn announce(&self, recorder: u64) {
        self.words[ANNOUNCED].store(recorder, Relaxed);
    }

    /// The recorder that the process waits for; 0: none.
    pub fn announced(&self) -> u64 {
        self.words[ANNOUNCED].load(Relaxed)
    }

    /// The recorder follows the stream with everything switched on that it wants, or will not follow it.
    pub fn attend(&self) {
        self.words[ATTENDED].store(1, Release);
    }

    /// Whether nobody has to wait for the recorder any more.
    pub fn is_attended(&self) -> bool {
        self.words[ATTENDED].load(Acquire) != 0
    }

    /// The recorder has chosen among the first `bytes` of the directory; [`u64::MAX`]: what is added later changes nothing.
    pub fn choose_by(&self, bytes: u64) {
        self.words[CHOSEN_BY].store(bytes, Release);
    }

    /// The bytes of the directory that the recorder has chosen by.
    pub fn chosen_by(&self) -> u64 {
        self.words[CHOSEN_BY].load(Acquire)
    }

    /// Rings beyond those from the beginning that have ever been used.
    pub fn later_rings(&self) -> usize {
        usize::try_from(self.words[LATER_RINGS].load(Acquire)).unwrap_or(usize::MAX)
    }

    /// One more such ring is about to be used. One thread at a time says so.
    pub fn add_later_ring(&self) {
        self.words[LATER_RINGS].fetch_add(1, Release);
    }

    /// The consumer of `bit` begins a pass over all rings; its number is for [`Self::finish_pass`].
    pub fn begin_pass(&self, bit: Bit) -> u64 {
        let begun = &self.words[PASSES_AT + 2 * bit.slot()];
        let pass = begun.load(Relaxed).wrapping_add(1);
        begun.store(pass, Relaxed);
        W::fence(SeqCst);
        pass
    }

    /// All that was in the rings when the pass began has been copied.
    pub fn finish_pass(&self, bit: Bit, pass: u64) {
        self.words[PASSES_AT + 2 * bit.slot() + 1].store(pass, Release);
    }

    /// The passes that consumers have begun, by slot.
    pub fn passes_begun(&self) -> impl Iterator<Item = u64> {
        (0..CONSUMERS).map(|slot| self.words[PASSES_AT + 2 * slot].load(Relaxed))
    }

    /// The last pass that each consumer has finished that makes passes, with its slot.
    pub fn passes_finished(&self) -> Vec<(usize, u64)> {
        let finished = |slot: usize| {
            let owner = self.owner(Bit::of_slot(slot)).load(Acquire);
            let [begun, finished] = [0, 1].map(|word| self.words[PASSES_AT + 2 * slot + word].load(Acquire));
            (owner != 0 && begun != 0).then_some((slot, finished))
        };
        (0..CONSUMERS).filter_map(finished).collect()
    }

    /// Takes a free slot for `owner`, after freeing those of the dead; `None` if all are taken. The slot's bits are
    /// clear.
    pub fn claim(&self, owner: u64, name: &str, is_dead: impl Fn(u64) -> bool) -> Option<Bit> {
        self.reap(owner, is_dead);
        let free = |bit: &Bit| self.owner(*bit).compare_exchange(0, owner, AcqRel).is_ok();
        let bit = (0..CONSUMERS).map(Bit::of_slot).find(free)?;
        self.write_name(bit, name);
        Some(bit)
    }

    /// Frees the slots of the dead on behalf of `reaper`, and returns their number.
    pub fn reap(&self, reaper: u64, is_dead: impl Fn(u64) -> bool) -> usize {
        let reaped = |bit: &Bit| {
            let found = self.owner(*bit).load(Acquire);
            let taken = found != 0
                && is_dead(found)
                && self.owner(*bit).compare_exchange(found, reaper, AcqRel).is_ok();
            if taken {
                self.release(*bit);
            }
            taken
        };
        (0..CONSUMERS).map(Bit::of_slot).filter(reaped).count()
    }

    /// Switches everything of the slot off and gives it back. Only its owner may.
    pub fn release(&self, bit: Bit) {
        self.clear(bit);
        self.owner(bit).store(0, Release);
    }

    /// Switches off everything that `bit` wanted.
    pub fn clear(&self, bit: Bit) {
        self.apply(bit, &SwitchSet::default());
    }

    /// Switches on what is in `set` and off what is not, for `bit`.
    pub fn apply(&self, bit: Bit, set: &SwitchSet) {
        self.switch_on(bit, set);
        self.switch_off(bit, &set.complement());
    }

    /// Switches on what is in `set`, for `bit`. Switches that are on already are not written to, so that threads at
    /// work keep them in their caches.
    pub fn switch_on(&self, bit: Bit, set: &SwitchSet) {
        for word in self.assignable(set).filter(|word| word.load(Relaxed) & bit.mask() == 0) {
            word.fetch_or(bit.mask(), Relaxed);
        }
    }

    /// Switches off what is in `set`, for `bit`.
    pub fn switch_off(&self, bit: Bit, set: &SwitchSet) {
        for word in self.assignable(set).filter(|word| word.load(Relaxed) & bit.mask() != 0) {
            word.fetch_and(!bit.mask(), Relaxed);
        }
    }

    fn assignable(&self, set: &SwitchSet) -> impl Iterator<Item = &'a W> {
        let words = self.switches()[..ASSIGNABLE].iter().enumerate();
        words.filter(|(index, _)| set.contains(*index)).map(|(_, word)| word)
    }

    /// What `bit` wants.
    pub fn wanted(&self, bit: Bit) -> SwitchSet {
        let mut set = SwitchSet::default();
        for (index, word) in self.switches()[..ASSIGNABLE].iter().enumerate() {
            if word.load(Relaxed) & bit.mask() != 0 {
                set.insert(index);
            }
        }
        set
    }

    /// The slots in use: bit, owner and name.
    pub fn consumers(&self) -> Vec<(Bit, u64, String)> {
        let slot = |bit: Bit| match self.owner(bit).load(Relaxed) {
            0 => None,
            owner => Some((bit, owner, self.read_name(bit))),
        };
        (0..CONSUMERS).map(Bit::of_slot).filter_map(slot).collect()
    }

    fn owner(&self, bit: Bit) -> &'a W {
        &self.words[CONSUMERS_AT + bit.slot() * CONSUMER_WORDS]
    }

    fn name_words(&self, bit: Bit) -> &'a [W] {
        let start = CONSUMERS_AT + bit.slot() * CONSUMER_WORDS;
        &self.words[start + 1..start + CONSUMER_WORDS]
    }

    fn write_name(&self, bit: Bit, name: &str) {
        let name = &name.as_bytes()[..name.floor_char_boundary(NAME_BYTES)];
        for (index, word) in self.name_words(bit).iter().enumerate() {
            let mut padded = [0; 8];
            let chunk = name.get(index * 8..).unwrap_or_default();
            let chunk = &chunk[..chunk.len().min(8)];
            padded[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(padded), Relaxed);
        }
    }

    fn read_name(&self, bit: Bit) -> String {
        let bytes = self.name_words(bit).iter().flat_map(|word| word.load(Relaxed).to_le_bytes());
        let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::AtomicU64;

    fn words() -> Vec<AtomicU64> {
        (0..CONTROL_WORDS).map(|_| AtomicU64::new(0)).collect()
    }

    fn set(switches: &[usize]) -> SwitchSet {
        switches.iter().copied().collect()
    }

    #[test]
    fn an_event_stays_on_while_anybody_wants_it() {
        let words = words();
        let control = Control::new(&words);
        let [a, b] = [1, 2].map(|owner| control.claim(owner, "c", |_| false).unwrap());
        control.apply(a, &set(&[1, 2]));
        control.apply(b, &set(&[2, 3]));
        let on = |index: usize| control.switches()[index].load(Relaxed) != 0;
        assert_eq!([1, 2, 3, 4].map(on), [true, true, true, false]);
        control.release(a);
        assert_eq!([1, 2, 3, 4].map(on), [false, true, true, false]);
        assert_eq!(control.consumers(), [(b, 2, "c".to_owned())]);
    }

    #[test]
    fn the_dead_are_reaped_and_their_slots_reused() {
        let words = words();
        let control = Control::new(&words);
        for owner in 1..=63 {
            let bit =
                control
                    .claim(owner, "a name longer than fifty-six bytes, which is cut at the end", |_| false);
            control.apply(bit.unwrap(), &SwitchSet::all());
            control.apply(bit.unwrap(), &set(&[owner as usize]));
        }
        assert_eq!(control.claim(100, "", |_| false), None);
        let odd = |owner: u64| owner % 2 == 1;
        let bit = control.claim(100, "new", odd).unwrap();
        assert_eq!(control.wanted(bit), SwitchSet::default());
        assert_eq!(control.consumers().len(), 31 + 1);
        assert_eq!(control.switches()[1].load(Relaxed), 0);
        assert_ne!(control.switches()[2].load(Relaxed), 0);
    }

    #[test]
    fn everything_is_each_switch_that_an_event_can_have_and_no_other() {
        let words = words();
        let control = Control::new(&words);
        control.initialise(1);
        let bit = control.claim(1, "c", |_| false).unwrap();
        control.apply(bit, &SwitchSet::all());
        assert_eq!(control.wanted(bit), SwitchSet::all());
        let on = |word: &AtomicU64| word.load(Relaxed);
        assert!(control.switches()[..ASSIGNABLE].iter().all(|word| on(word) == bit.mask()));
        control.release(bit);
        assert!(control.switches()[..ASSIGNABLE].iter().all(|word| on(word) == 0));
        assert!(control.switches()[ASK..].iter().all(|word| on(word) == u64::MAX));
    }

    proptest! {
        /// Whatever consumers do in whatever order, a switch holds exactly the bits of those who want it now.
        #[test]
        fn switches_are_the_union_of_wishes(steps in prop::collection::vec((0usize..5, 0u8..3, prop::collection::vec(0usize..8, 0..5)), 1..30)) {
            let words = words();
            let control = Control::new(&words);
            let mut wishes: [Option<(Bit, SwitchSet)>; 5] = Default::default();
            for (who, what, switches) in steps {
                match (what, wishes[who].take()) {
                    (0, Some((bit, _))) => control.release(bit),
                    (1, Some(_)) => { control.reap(99, |owner| owner == who as u64 + 1); }
                    (_, wish) => {
                        let bit = wish.map_or_else(|| control.claim(who as u64 + 1, "", |_| false).unwrap(), |wish| wish.0);
                        control.apply(bit, &set(&switches));
                        wishes[who] = Some((bit, set(&switches)));
                    }
                }
                for switch in 0..8 {
                    let expected = wishes.iter().flatten().filter(|wish| wish.1.contains(switch));
                    let expected = expected.fold(0, |bits, wish| bits | wish.0.mask());
                    prop_assert_eq!(control.switches()[switch].load(Relaxed), expected);
                }
            }
        }
    }
}
