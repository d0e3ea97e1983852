//! What the runtime asks of Linux.

mod inbox;
