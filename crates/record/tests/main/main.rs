//! Integration tests of records: files, rings, streams, families, and processes that share them.

mod allocation;
mod corruption;
mod damaged;
mod declared;
mod files;
mod killed;
mod layout;
mod long;
mod passive;
mod streams;
