//! Windows for all accepted pieces of work: those that have started go on, one after the other, and the search finds an order of the others.

use super::search::{Workspace, reserve, search};
use super::timetable::Timetable;
use super::{Accepted, Guaranteed, Window, has_started};
use crate::hierarchy::{Constraint, Shortage};
use crate::scheduler::uniprocessor::Clients;
use talea_time::Instant;

/// Accepted pieces, and the windows that are found for them. Kept from one time to the next, so that a new piece can be accepted or refused
/// without allocating.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// With the places of the children whose they are.
    pieces: Vec<(usize, Accepted)>,
    /// By the same places.
    windows: Vec<(usize, Window)>,
    workspace: Workspace,
}

impl Order {
    /// Room for a piece of each of so many children.
    pub fn reserve(&mut self, children: usize) {
        reserve(&mut self.pieces, children);
        reserve(&mut self.windows, children);
        self.workspace.reserve(children);
    }

    /// Takes in the accepted pieces of all children but the one at `except`, and nothing else.
    pub fn gather(&mut self, clients: &Clients<Guaranteed>, except: Option<usize>) {
        self.pieces.clear();
        let others = clients.accounts().enumerate().filter(|(place, _)| Some(*place) != except);
        self.pieces.extend(others.filter_map(|(place, account)| account.piece.map(|piece| (place, piece))));
    }

    /// Another piece, which has not started.
    pub fn add(&mut self, place: usize, piece: Accepted) {
        self.pieces.push((place, piece));
    }

    /// Finds windows for the pieces in what the timetable leaves, from `now` on.
    ///
    /// # Errors
    /// There is no room for one that has started, or no order was found.
    pub fn find(&mut self, now: Instant, timetable: &Timetable, effort: u32) -> Result<(), Shortage> {
        let Order { pieces, windows, workspace } = self;
        windows.clear();
        let all = pieces.len();
        let none = |tried| Shortage::Order { pieces: all, tried };
        let mut free_from = now;
        for (place, piece) in pieces.iter().filter(|(_, piece)| has_started(piece)) {
            let rest = Constraint { work: piece.rest(now), ..piece.constraint };
            let start = timetable.fit(&rest, free_from).ok_or_else(|| none(0))?;
            free_from = start + rest.work.at_full_speed();
            windows.push((*place, (start, free_from)));
        }
        pieces.retain(|(_, piece)| !has_started(piece));
        let piece = |chain: usize, number: usize| (number == 0).then(|| pieces[chain].1.constraint);
        let fit = |piece: &Constraint, from| timetable.fit(piece, from);
        search(workspace, (pieces.len(), piece), free_from, effort, fit).map_err(none)?;
        windows.extend(
            workspace.plan().iter().map(|placed| (pieces[placed.chain].0, (placed.start, placed.end))),
        );
        Ok(())
    }

    /// Writes the windows that were found to the pieces.
    pub fn settle(&self, clients: &mut Clients<Guaranteed>) {
        for (place, planned) in &self.windows {
            if let Some(piece) = &mut clients.account_mut(*place).piece {
                piece.planned = *planned;
            }
        }
    }
}
