//! What is done once on each thread that executes jobs.

use std::sync::{Mutex, PoisonError};

static PREPARATIONS: Mutex<Vec<fn()>> = Mutex::new(Vec::new());

/// Has `prepare` called on each thread of a run from now on that executes jobs, before its first one: libraries whose calls are to allocate nothing
/// in jobs make there what each thread needs of its own. The same function counts once.
pub fn on_each_thread(prepare: fn()) {
    let mut preparations = PREPARATIONS.lock().unwrap_or_else(PoisonError::into_inner);
    if !preparations.iter().any(|other| std::ptr::fn_addr_eq(*other, prepare)) {
        preparations.push(prepare);
    }
}

/// Calls on the calling thread, which is going to execute jobs, what is to be [called on each](on_each_thread).
pub fn call_on_this_thread() {
    let preparations = PREPARATIONS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    preparations.iter().for_each(|prepare| prepare());
}
