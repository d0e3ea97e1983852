//! Instructions for the kernel's programs, as `Documentation/bpf/standardization/instruction-set.rst` has them.

use rustix::fd::{AsRawFd, BorrowedFd};

/// A register. Calls take [`A1`](Register::A1) to `A5` and answer in [`R0`](Register::R0), which all are lost by them; the
/// others are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are numbers")]
pub enum Register {
    R0 = 0,
    A1 = 1,
    A2 = 2,
    A3 = 3,
    A4 = 4,
    A5 = 5,
    S1 = 6,
    S2 = 7,
    S3 = 8,
    S4 = 9,
    /// The end of the program's 512 bytes of memory.
    Frame = 10,
}

/// How much is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Four bytes.
    Word = 0x00,
    /// Eight bytes.
    Double = 0x18,
}

/// What two values are compared by, as whole 64-bit words without sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum If {
    /// They are the same.
    Equal = 0x10,
    /// They are not.
    Different = 0x50,
    /// They have bits in common.
    Common = 0x40,
    /// The first is greater.
    Greater = 0x20,
}

/// What is done to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Do {
    /// Sum.
    Add = 0x00,
    /// Difference.
    Subtract = 0x10,
    /// Bits in common.
    And = 0x50,
}

/// What the kernel offers, by its number in `enum bpf_func_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Helper {
    /// (map, address of the key): the address of the value, or 0.
    Lookup = 1,
    /// (map, key, value, 0): 0, or a refusal.
    Update = 2,
    /// (map, key).
    Delete = 3,
    /// CLOCK_MONOTONIC in nanoseconds.
    Now = 5,
    /// The number of the processor.
    Processor = 8,
    /// (ring, bytes, their number, 0): 0, or a refusal.
    Tell = 130,
}

/// A place in a program to which jumps lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

/// A program that is being written.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    instructions: Vec<u64>,
    /// Where labels are, once they are placed.
    labels: Vec<Option<usize>>,
    /// Jumps and where they lead.
    jumps: Vec<(usize, Label)>,
}

const CLASS_LOAD_WIDE: u8 = 0x18;
const CLASS_LOAD: u8 = 0x61;
const CLASS_STORE: u8 = 0x63;
const CLASS_ATOMIC: u8 = 0xdb;
const CLASS_ALU_REGISTER: u8 = 0x0f;
const CLASS_ALU_NUMBER: u8 = 0x07;
const CLASS_JUMP: u8 = 0x05;
const FROM_REGISTER: u8 = 0x08;
const MOVE: u8 = 0xb0;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
/// The address of a map, of which the number of the descriptor is said.
const MAP: u8 = 1;
/// The address of the value of a map of one value.
const MAP_VALUE: u8 = 2;

impl Assembler {
    /// An empty program.
    pub fn new() -> Self {
        Assembler::default()
    }

    fn put(&mut self, code: u8, to: Register, from: u8, offset: i16, number: i32) {
        let registers = (to as u8) | (from << 4);
        let [low, high] = offset.to_le_bytes();
        let [n0, n1, n2, n3] = number.to_le_bytes();
        self.instructions.push(u64::from_le_bytes([code, registers, low, high, n0, n1, n2, n3]));
    }

    /// A place that is not known yet.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// The label is here.
    pub fn place(&mut self, label: Label) {
        assert_eq!(self.labels[label.0], None, "a label is in one place");
        self.labels[label.0] = Some(self.instructions.len());
    }

    /// `to` becomes the value of `from`.
    pub fn copy(&mut self, to: Register, from: Register) {
        self.put(CLASS_ALU_NUMBER | MOVE | FROM_REGISTER, to, from as u8, 0, 0);
    }

    /// `to` becomes this number.
    pub fn set(&mut self, to: Register, number: i32) {
        self.put(CLASS_ALU_NUMBER | MOVE, to, 0, 0, number);
    }

    /// Something is done to `to` with the value of `from`.
    pub fn operate(&mut self, what: Do, to: Register, from: Register) {
        self.put(CLASS_ALU_REGISTER | what as u8, to, from as u8, 0, 0);
    }

    /// Something is done to `to` with a number.
    pub fn operate_by(&mut self, what: Do, to: Register, number: i32) {
        self.put(CLASS_ALU_NUMBER | what as u8, to, 0, 0, number);
    }

    /// `to` becomes what is at `offset` from where `from` points.
    pub fn load(&mut self, width: Width, to: Register, from: Register, offset: i16) {
        self.put(CLASS_LOAD | width as u8, to, from as u8, offset, 0);
    }

    /// What is at `offset` from where `to` points becomes the value of `from`.
    pub fn store(&mut self, width: Width, to: Register, offset: i16, from: Register) {
        self.put(CLASS_STORE | width as u8, to, from as u8, offset, 0);
    }

    /// The eight bytes at `offset` from where `to` points grow by the value of `from` in one step, which is before all that comes later
    /// and after all that came earlier; `from` becomes what they were.
    pub fn fetch_add(&mut self, to: Register, offset: i16, from: Register) {
        const FETCH_AND_ADD: i32 = 0x01;
        self.put(CLASS_ATOMIC, to, from as u8, offset, FETCH_AND_ADD);
    }

    /// `to` becomes the address of a map, for a call.
    pub fn map(&mut self, to: Register, map: BorrowedFd<'_>) {
        self.put(CLASS_LOAD_WIDE, to, MAP, 0, map.as_raw_fd());
        self.instructions.push(0);
    }

    /// `to` becomes the address of the only value of an array.
    pub fn value_of(&mut self, to: Register, array: BorrowedFd<'_>) {
        self.put(CLASS_LOAD_WIDE, to, MAP_VALUE, 0, array.as_raw_fd());
        self.instructions.push(0);
    }

    /// `to` becomes the address of so many bytes below the frame's end.
    pub fn memory(&mut self, to: Register, offset: i16) {
        self.copy(to, Register::Frame);
        self.operate_by(Do::Add, to, offset.into());
    }

    /// Calls the kernel.
    pub fn call(&mut self, helper: Helper) {
        self.put(CLASS_JUMP | CALL, Register::R0, 0, 0, helper as i32);
    }

    /// `R0` becomes the address of the value whose key is in memory at `key`, or 0.
    pub fn look_up(&mut self, map: BorrowedFd<'_>, key: i16) {
        self.map(Register::A1, map);
        self.memory(Register::A2, key);
        self.call(Helper::Lookup);
    }

    /// Goes to `label` if the register and the number compare so.
    pub fn jump_if(&mut self, how: If, left: Register, number: i32, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.put(CLASS_JUMP | how as u8, left, 0, 0, number);
    }

    /// Goes to `label` if the two registers compare so.
    pub fn jump_if_registers(&mut self, how: If, left: Register, right: Register, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.put(CLASS_JUMP | FROM_REGISTER | how as u8, left, right as u8, 0, 0);
    }

    /// Goes to `label`.
    pub fn jump(&mut self, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.put(CLASS_JUMP, Register::R0, 0, 0, 0);
    }

    /// Ends with 0.
    pub fn exit(&mut self) {
        self.set(Register::R0, 0);
        self.put(CLASS_JUMP | EXIT, Register::R0, 0, 0, 0);
    }

    /// The instructions.
    ///
    /// # Panics
    /// A label was jumped to and not placed, or is too far away.
    pub fn finish(mut self) -> Vec<u64> {
        for (at, label) in self.jumps {
            let to = self.labels[label.0].expect("labels that are jumped to are placed");
            let distance = i16::try_from(to as i64 - at as i64 - 1).expect("programs are short");
            self.instructions[at] |= u64::from(distance as u16) << 16;
        }
        self.instructions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_those_of_the_kernels_own_assembler() {
        let mut program = Assembler::new();
        let end = program.label();
        program.load(Width::Double, Register::S1, Register::A1, 8);
        program.load(Width::Word, Register::A1, Register::S1, 0x5a8);
        program.store(Width::Word, Register::Frame, -4, Register::A1);
        program.jump_if(If::Equal, Register::A1, 0, end);
        program.fetch_add(Register::S1, 16, Register::A1);
        program.operate(Do::Subtract, Register::A1, Register::A2);
        program.call(Helper::Now);
        program.place(end);
        program.exit();
        // As `BPF_LDX_MEM(BPF_DW, BPF_REG_6, BPF_REG_1, 8)` and so on expand.
        let expected = [
            0x0000_0000_0008_1679,
            0x0000_0000_05a8_6161,
            0x0000_0000_fffc_1a63,
            0x0000_0000_0003_0115,
            0x0000_0001_0010_16db,
            0x0000_0000_0000_211f,
            0x0000_0005_0000_0085,
            0x0000_0000_0000_00b7,
            0x0000_0000_0000_0095,
        ];
        assert_eq!(program.finish(), expected);
    }
}
