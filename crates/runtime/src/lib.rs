//! runtime

pub mod bell;
pub mod burn;
pub mod inbox;
mod primitive;
pub mod sys;
pub mod timer;
