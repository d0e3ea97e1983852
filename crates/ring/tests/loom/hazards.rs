//! Values that are replaced while they are read, under loom. Barriers are fences here: that a light half together with the kernel's heavy half orders as
//! much is what the kernel promises (membarrier(2)). Where three threads take part, at most two preemptions are explored.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use talea_ring::hazard::{Hazard, Replaceable};

/// A value that loom sees being freed: whoever reads it after that, or at that time, is found.
struct Value(UnsafeCell<u64>);

fn value(number: u64) -> *mut Value {
    Box::into_raw(Box::new(Value(UnsafeCell::new(number))))
}

/// Reads what there is and frees nothing.
fn read(hazard: &Hazard, pointer: &Replaceable<Value>) -> u64 {
    let value = hazard.protect(pointer);
    // SAFETY: it is protected; were it freed all the same, the memory would be there still, and loom tell of the access.
    let number = unsafe { (*value).0.with(|number| *number) };
    hazard.clear();
    number
}

/// Replaces what there is and frees it if nobody reads it.
fn replace(hazards: &[Arc<Hazard>], pointer: &Replaceable<Value>, number: u64) {
    let former = pointer.replace(value(number));
    if !hazards.iter().any(|hazard| hazard.protects(former)) {
        // SAFETY: as in `read`.
        unsafe { (*former).0.with_mut(|freed| *freed = u64::MAX) };
    }
}

#[test]
fn nobody_reads_what_one_of_two_who_replace_it_has_freed() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let pointer = Arc::new(Replaceable::new(value(0)));
        let hazards: Vec<Arc<Hazard>> = vec![Arc::default()];
        let (hazard, theirs) = (Arc::clone(&hazards[0]), Arc::clone(&pointer));
        let reader = thread::spawn(move || assert!(read(&hazard, &theirs) < 3));
        let (seen, theirs) = (hazards.clone(), Arc::clone(&pointer));
        let other = thread::spawn(move || replace(&seen, &theirs, 1));
        replace(&hazards, &pointer, 2);
        [reader, other].into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn who_reads_twice_sees_no_older_value_than_before() {
    loom::model(|| {
        let pointer = Arc::new(Replaceable::new(value(0)));
        let hazards: Vec<Arc<Hazard>> = vec![Arc::default()];
        let (hazard, theirs) = (Arc::clone(&hazards[0]), Arc::clone(&pointer));
        let reader = thread::spawn(move || {
            let [first, second] = [(); 2].map(|()| read(&hazard, &theirs));
            assert!(first <= second && second < 3);
        });
        (1..3).for_each(|number| replace(&hazards, &pointer, number));
        reader.join().unwrap();
    });
}
