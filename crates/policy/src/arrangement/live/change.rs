//! Changes of a description: each is an edit of plain values, which the model's rules and the derivation then judge.

use crate::arrangement::ChangeReason;
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::scheduler::article;
use talea_model::{
    Asks, Description, Request, Scheduler, SchedulerKind, Setting, Settings, Thread, ThreadWork, Under,
};
use talea_time::Duration;

/// A change of a running hierarchy. Names are those of the description.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// One more scheduler, without children.
    AddScheduler {
        /// Its name.
        name: String,
        /// What it is.
        kind: SchedulerKind,
        /// Its quantum; without one, that of system files, if the kind has any.
        quantum: Option<Duration>,
        /// What else is said of it; the rest is as in a system file that says nothing.
        settings: Vec<(&'static str, Setting)>,
        /// Who schedules it, and what it asks of them.
        under: Vec<(String, Request)>,
    },
    /// A scheduler without children goes.
    RemoveScheduler {
        /// Which.
        name: String,
    },
    /// One more thread.
    AddThread {
        /// Its name.
        name: String,
        /// What it does.
        work: ThreadWork,
        /// What it has to receive.
        requires: Option<Guarantee>,
        /// Who schedules it.
        under: String,
        /// What it asks for.
        request: Request,
    },
    /// A thread goes.
    RemoveThread {
        /// Which.
        name: String,
    },
    /// A thread, or a scheduler with all that is below it, gets other parents.
    Move {
        /// Who.
        name: String,
        /// The parents, as many as before.
        under: Vec<(String, Request)>,
    },
    /// A thread or scheduler asks its parent for something else: a reservation is changed.
    Ask {
        /// Who.
        name: String,
        /// Which parent, if it has several.
        of: Option<String>,
        /// What it asks for from now on.
        request: Request,
    },
    /// A scheduler of another kind, or with another quantum, takes the place of one.
    Replace {
        /// Which.
        name: String,
        /// What it becomes.
        kind: SchedulerKind,
        /// Its quantum; without one, that of its predecessor or else that of system files, if the kind has any.
        quantum: Option<Duration>,
        /// What else is said of it. The rest is as of its predecessor if that is of the same kind, else as in a system file that says
        /// nothing.
        settings: Vec<(&'static str, Setting)>,
        /// What children ask for from now on. The others ask for what they did, where the new kind understands that.
        children: Vec<(String, Request)>,
    },
}

/// Why a change cannot even be written down.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// Nobody goes by that name.
    #[error("there is no {what} \"{name}\"; there is {}", among(.known))]
    Unknown {
        /// Thread, scheduler, or either.
        what: &'static str,
        /// What was asked for.
        name: String,
        /// Who there is.
        known: Vec<String>,
    },
    /// The name is somebody's.
    #[error("there is a scheduler or thread \"{0}\" already; give the new one another name")]
    Taken(String),
    /// Everything hangs on it.
    #[error("\"{0}\" is the root: it can be replaced, but neither removed nor moved")]
    Root(String),
    /// Somebody would be left without a parent.
    #[error("scheduler \"{name}\" has children: {}; remove or move them before", .children.join(", "))]
    HasChildren {
        /// The scheduler.
        name: String,
        /// Who is under it.
        children: Vec<String>,
    },
    /// It moves with all its virtual processors.
    #[error("\"{name}\" has {has} parents and needs as many where it goes, not {given}")]
    Parents {
        /// Who moves.
        name: String,
        /// Parents it has.
        has: usize,
        /// Parents it was to have.
        given: usize,
    },
    /// It is not said whom it asks.
    #[error("\"{name}\" has several parents, {}; say of which it asks something else", .parents.join(" and "))]
    WhichParent {
        /// Who asks.
        name: String,
        /// Its parents.
        parents: Vec<String>,
    },
    /// It is nobody's child, or not that one's.
    #[error("\"{name}\" is not under {}", .of.as_ref().map_or("anybody".into(), |of| format!("\"{of}\"")))]
    NotUnder {
        /// Who asks.
        name: String,
        /// Whom.
        of: Option<String>,
    },
    /// What a child asks for means nothing to the new kind.
    #[error(
        "{}: {} {kind} scheduler takes something else; say what each asks for: {wanted}",
        .children.join(", "), article(kind.name())
    )]
    Requests {
        /// Who asks for what.
        children: Vec<String>,
        /// The new kind.
        kind: SchedulerKind,
        /// What it takes.
        wanted: String,
    },
    /// Lanes hold tasks, which are made for a run.
    #[error("\"{0}\" has the lanes of tasks, which stay as long as the run")]
    Lanes(String),
}

/// At most this many names are listed.
const LISTED: usize = 12;

fn among(known: &[String]) -> String {
    match known.len() {
        0 => "none".into(),
        more if more > LISTED => format!("{} and {} more", known[..LISTED].join(", "), more - LISTED),
        _ => known.join(", "),
    }
}

/// Somebody of the hierarchy, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Scheduler(usize),
    Thread(usize),
}

impl Change {
    /// What the hierarchy is changed for.
    pub fn reason(&self) -> ChangeReason {
        match self {
            Change::AddScheduler { .. } => ChangeReason::SchedulerAdded,
            Change::RemoveScheduler { .. } => ChangeReason::SchedulerRemoved,
            Change::AddThread { .. } => ChangeReason::ThreadAdded,
            Change::RemoveThread { .. } => ChangeReason::ThreadRemoved,
            Change::Move { .. } => ChangeReason::Moved,
            Change::Ask { .. } => ChangeReason::RequestChanged,
            Change::Replace { .. } => ChangeReason::SchedulerReplaced,
        }
    }

    /// The description after the change of `node`, whatever its rules say about it.
    ///
    /// # Errors
    /// See [`EditError`].
    pub fn apply(&self, description: &Description, node: usize) -> Result<Description, EditError> {
        let mut edit = Edit { description: description.clone(), node };
        match self {
            Change::AddScheduler { name, kind, quantum, settings, under } => {
                edit.add_scheduler(name, *kind, (*quantum, settings), under)?;
            }
            Change::RemoveScheduler { name } => edit.remove_scheduler(name)?,
            Change::AddThread { name, work, requires, under, request } => {
                edit.check_free(name)?;
                let under = vec![edit.under(under, request)?];
                let (name, work, requires) = (name.clone(), work.clone(), requires.clone());
                edit.description.threads.push(Thread { name, node, work, requires, under });
            }
            Change::RemoveThread { name } => {
                let index = edit.thread(name)?;
                edit.description.threads.remove(index);
            }
            Change::Move { name, under } => edit.move_under(name, under)?,
            Change::Ask { name, of, request } => edit.ask(name, of.as_deref(), request)?,
            Change::Replace { name, kind, quantum, settings, children } => {
                edit.replace(name, *kind, (*quantum, settings), children)?;
            }
        }
        Ok(edit.description)
    }
}

/// The change that removes whoever goes by `name`, of `node`.
///
/// # Errors
/// [`EditError::Unknown`].
pub(super) fn removal(description: &Description, node: usize, name: &str) -> Result<Change, EditError> {
    let edit = Edit { description: description.clone(), node };
    let name = name.to_owned();
    Ok(match edit.who(&name)? {
        Who::Scheduler(_) => Change::RemoveScheduler { name },
        Who::Thread(_) => Change::RemoveThread { name },
    })
}

struct Edit {
    description: Description,
    node: usize,
}

impl Edit {
    fn scheduler(&self, name: &str) -> Result<usize, EditError> {
        let schedulers = &self.description.schedulers;
        let here = |scheduler: &&Scheduler| scheduler.node == self.node;
        let found =
            schedulers.iter().position(|scheduler| scheduler.node == self.node && scheduler.name == name);
        found.ok_or_else(|| EditError::Unknown {
            what: "scheduler",
            name: name.into(),
            known: schedulers.iter().filter(here).map(|scheduler| scheduler.name.clone()).collect(),
        })
    }

    fn thread(&self, name: &str) -> Result<usize, EditError> {
        let threads = &self.description.threads;
        let found = threads.iter().position(|thread| thread.node == self.node && thread.name == name);
        found.ok_or_else(|| EditError::Unknown {
            what: "thread",
            name: name.into(),
            known: self.threads_here().map(|thread| thread.name.clone()).collect(),
        })
    }

    fn threads_here(&self) -> impl Iterator<Item = &Thread> {
        self.description.threads.iter().filter(|thread| thread.node == self.node)
    }

    fn who(&self, name: &str) -> Result<Who, EditError> {
        if let Ok(index) = self.scheduler(name) {
            return Ok(Who::Scheduler(index));
        }
        self.thread(name).map(Who::Thread).map_err(|_| {
            let schedulers =
                self.description.schedulers.iter().filter(|scheduler| scheduler.node == self.node);
            let names = schedulers.map(|scheduler| scheduler.name.clone());
            let known = names.chain(self.threads_here().map(|thread| thread.name.clone())).collect();
            EditError::Unknown { what: "scheduler or thread", name: name.into(), known }
        })
    }

    fn check_free(&self, name: &str) -> Result<(), EditError> {
        let schedulers = self.description.schedulers.iter().map(|scheduler| &scheduler.name);
        let mut names = schedulers.chain(self.description.threads.iter().map(|thread| &thread.name));
        if names.any(|taken| taken == name) { Err(EditError::Taken(name.into())) } else { Ok(()) }
    }

    fn under(&self, parent: &str, request: &Request) -> Result<Under, EditError> {
        Ok(Under { scheduler: self.scheduler(parent)?, request: request.clone() })
    }

    fn unders(&self, under: &[(String, Request)]) -> Result<Vec<Under>, EditError> {
        under.iter().map(|(parent, request)| self.under(parent, request)).collect()
    }

    fn under_of(&mut self, who: Who) -> &mut Vec<Under> {
        match who {
            Who::Scheduler(index) => &mut self.description.schedulers[index].under,
            Who::Thread(index) => &mut self.description.threads[index].under,
        }
    }

    /// Who is under the scheduler at `index`.
    fn children(&self, index: usize) -> Vec<Who> {
        let is_here = |under: &[Under]| under.iter().any(|under| under.scheduler == index);
        let Description { schedulers, threads, .. } = &self.description;
        let of_schedulers = (0..schedulers.len()).filter(|child| is_here(&schedulers[*child].under));
        let of_threads = (0..threads.len()).filter(|child| is_here(&threads[*child].under));
        of_schedulers.map(Who::Scheduler).chain(of_threads.map(Who::Thread)).collect()
    }

    fn name(&self, who: Who) -> &str {
        match who {
            Who::Scheduler(index) => &self.description.schedulers[index].name,
            Who::Thread(index) => &self.description.threads[index].name,
        }
    }

    fn add_scheduler(
        &mut self,
        name: &str,
        kind: SchedulerKind,
        (quantum, said): (Option<Duration>, &[(&'static str, Setting)]),
        under: &[(String, Request)],
    ) -> Result<(), EditError> {
        self.check_free(name)?;
        if kind == SchedulerKind::LANES {
            return Err(EditError::Lanes(name.into()));
        }
        let quantum = quantum.or(kind.preset_quantum());
        let (name, node, under) = (name.into(), self.node, self.unders(under)?);
        let settings = Settings::of(kind).with(said);
        self.description.schedulers.push(Scheduler {
            name,
            node,
            kind,
            quantum,
            takes: None,
            settings,
            under,
        });
        Ok(())
    }

    fn remove_scheduler(&mut self, name: &str) -> Result<(), EditError> {
        let index = self.scheduler(name)?;
        let scheduler = &self.description.schedulers[index];
        if scheduler.under.is_empty() {
            return Err(EditError::Root(name.into()));
        }
        if scheduler.kind == SchedulerKind::LANES {
            return Err(EditError::Lanes(name.into()));
        }
        let children: Vec<String> =
            self.children(index).into_iter().map(|child| self.name(child).into()).collect();
        if !children.is_empty() {
            return Err(EditError::HasChildren { name: name.into(), children });
        }
        let Description { schedulers, threads, tasks, .. } = &mut self.description;
        schedulers.remove(index);
        let renumber = |number: &mut usize| *number -= usize::from(*number > index);
        schedulers.iter_mut().filter_map(|scheduler| scheduler.takes.as_mut()).for_each(renumber);
        let of_schedulers = schedulers.iter_mut().flat_map(|scheduler| &mut scheduler.under);
        let of_threads = threads.iter_mut().flat_map(|thread| &mut thread.under);
        of_schedulers.chain(of_threads).for_each(|under| renumber(&mut under.scheduler));
        let subtasks = tasks.iter_mut().flat_map(|task| &mut task.subtasks);
        subtasks.filter_map(|subtask| subtask.lanes.as_mut()).for_each(renumber);
        Ok(())
    }

    fn move_under(&mut self, name: &str, under: &[(String, Request)]) -> Result<(), EditError> {
        let who = self.who(name)?;
        let new = self.unders(under)?;
        let old = self.under_of(who);
        match old.len() {
            0 => Err(EditError::Root(name.into())),
            has if has != new.len() => Err(EditError::Parents { name: name.into(), has, given: new.len() }),
            _ => {
                *old = new;
                // A join cannot go on taking the guarantee of a parent that it has left.
                if let Who::Scheduler(index) = who {
                    let scheduler = &mut self.description.schedulers[index];
                    let has = |parent: &usize| scheduler.under.iter().any(|under| under.scheduler == *parent);
                    scheduler.takes = scheduler.takes.filter(has);
                }
                Ok(())
            }
        }
    }

    fn ask(&mut self, name: &str, of: Option<&str>, request: &Request) -> Result<(), EditError> {
        let who = self.who(name)?;
        let of = of.map(|of| self.scheduler(of)).transpose()?;
        let names: Vec<String> =
            self.description.schedulers.iter().map(|scheduler| scheduler.name.clone()).collect();
        let not_under =
            || EditError::NotUnder { name: name.into(), of: of.map(|parent| names[parent].clone()) };
        let under = self.under_of(who);
        let asked = match (of, under.len()) {
            (Some(of), _) => under.iter_mut().find(|under| under.scheduler == of),
            (None, 0 | 1) => under.first_mut(),
            (None, _) => {
                let parents = under.iter().map(|under| names[under.scheduler].clone()).collect();
                return Err(EditError::WhichParent { name: name.into(), parents });
            }
        };
        asked.ok_or_else(not_under)?.request = request.clone();
        Ok(())
    }

    fn replace(
        &mut self,
        name: &str,
        kind: SchedulerKind,
        (quantum, said): (Option<Duration>, &[(&'static str, Setting)]),
        children: &[(String, Request)],
    ) -> Result<(), EditError> {
        let index = self.scheduler(name)?;
        let before = &self.description.schedulers[index];
        if [before.kind, kind].contains(&SchedulerKind::LANES) {
            return Err(EditError::Lanes(name.into()));
        }
        let usual = before.quantum.or(kind.preset_quantum()).filter(|_| kind.has_quantum());
        let takes = before.takes.filter(|_| kind.chooses_parent());
        let same = before.kind == kind;
        let replaced = &mut self.description.schedulers[index];
        (replaced.kind, replaced.takes) = (kind, takes);
        replaced.quantum = quantum.or(usual);
        // What is said of one kind says nothing about another.
        let usual = if same { replaced.settings.clone() } else { Settings::of(kind) };
        replaced.settings = usual.with(said);
        for (child, request) in children {
            self.ask(child, Some(name), request)?;
        }
        self.check_requests(index, kind)
    }

    /// Lets the children of the scheduler at `index` ask for nothing where its new kind wants nothing; where it wants
    /// something that they do not ask for, it has to be said.
    fn check_requests(&mut self, index: usize, kind: SchedulerKind) -> Result<(), EditError> {
        let mut unfit = Vec::new();
        for child in self.children(index) {
            let name = self.name(child).to_owned();
            let under = self.under_of(child).iter_mut().find(|under| under.scheduler == index);
            let request = &mut under.expect("it is a child").request;
            match kind.asks {
                Asks::Nothing => *request = Request::Nothing,
                asks if !request.fits(asks) => unfit.push(format!("\"{name}\" asks for {request}")),
                _ => {}
            }
        }
        match unfit.is_empty() {
            true => Ok(()),
            false => Err(EditError::Requests { children: unfit, kind, wanted: kind.asks.wanted() }),
        }
    }
}
