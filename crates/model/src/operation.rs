//! Operations: the subtasks of all tasks of a system, numbered.

/// With this begins the name of what has not been defined, and of nothing else.
pub const UNDEFINED: char = '?';

/// An operation's number: its position when all subtasks of all tasks are listed in file order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(u32);

impl OperationId {
    /// The greatest number of operations a system may have, so that a job fits one trace word.
    pub const LIMIT: usize = 1 << 20;

    /// The operation at position `index`.
    ///
    /// # Panics
    /// If `index` is not below [`Self::LIMIT`], which validation has ruled out.
    #[inline]
    pub fn from_index(index: usize) -> Self {
        assert!(index < Self::LIMIT, "operation {index} is beyond the limit of {}", Self::LIMIT);
        OperationId(index as u32)
    }

    /// The position, for indexing [`System::operations`](crate::System::operations).
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A subtask by its indices, before operations are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationAddress {
    /// Index into [`Description::tasks`](crate::Description::tasks).
    pub task: usize,
    /// Index into the task's subtasks.
    pub subtask: usize,
}

/// One subtask with what a scheduler needs to know about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Its number.
    pub id: OperationId,
    /// Index into [`Description::tasks`](crate::Description::tasks).
    pub task: usize,
    /// Index into the task's subtasks.
    pub subtask: usize,
    /// `task` for a task of one subtask of the same name, else `task.subtask`.
    pub name: String,
    /// Direct predecessors.
    pub predecessors: Vec<OperationId>,
    /// Direct successors.
    pub successors: Vec<OperationId>,
    /// Position in a topological order of its task: every predecessor has a smaller one.
    pub topological_rank: u32,
}
