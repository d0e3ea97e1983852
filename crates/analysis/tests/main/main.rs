//! Evidence for the analyses.
