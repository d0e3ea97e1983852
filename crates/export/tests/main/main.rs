//! Integration tests of the exporters, read back by other programs and decoders.

mod ctf;
mod exports;
mod long;
mod perfetto;
mod perfetto_schema;
mod shared;
mod tables;
