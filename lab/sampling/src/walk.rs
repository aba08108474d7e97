//! The places of a sampled stack: kernel code, and user code by frame pointers or by a copy of the stack.

use lab_archive::Frames;

use crate::events::{MOST_FRAMES, RawSample};
use crate::spaces::Spaces;
use crate::stacks::Frame;
use crate::unwind::Stopped;

/// Returns true if the chain of frame pointers has as much information as the copy of the stack; `None` without a copy.
pub(crate) fn is_equal(spaces: &mut Spaces, sample: &RawSample) -> Option<bool> {
    let stopped = Stopped {
        registers: sample.registers.as_ref()?,
        stack: &sample.stack,
    };
    let (followed, whole) = spaces.follow(sample.pid, stopped);
    let outermost = sample.user.last().map(|address| address.wrapping_sub(1));
    let near_end = followed
        .iter()
        .rev()
        .take(3)
        .any(|address| Some(*address) == outermost);
    // A function without a frame pointer hides its caller from the chain: up to three frames may be missing.
    let equal_end = near_end && sample.user.len() + 3 >= followed.len();
    // If the copy ends early, the chain of frame pointers is good if it is as long.
    let longer = !whole && sample.user.len() >= followed.len();
    Some((whole && equal_end) || longer)
}

/// The places of a stack, the innermost first.
pub(crate) fn stack(spaces: &mut Spaces, frames: Option<Frames>, sample: &RawSample) -> Vec<Frame> {
    let kernel = called(&sample.kernel).map(Frame::Kernel);
    let mut stack: Vec<Frame> = kernel.collect();
    let chain: Vec<u64> = called(&sample.user).collect();
    let (user, end) = match (frames, &sample.registers) {
        (_, _) if chain.is_empty() && sample.registers.is_none() => (chain, None),
        (Some(Frames::Pointers), _) | (_, None) => (chain, Some(Frame::Chained)),
        (_, Some(registers)) => {
            let stopped = Stopped {
                registers,
                stack: &sample.stack,
            };
            match spaces.follow(sample.pid, stopped) {
                (followed, true) => (followed, None),
                // Threads that switch to another stack, as in Go, have left the copied one.
                (followed, false) if chain.len() > followed.len() => (chain, Some(Frame::Chained)),
                (followed, false) => (followed, Some(Frame::Broken)),
            }
        }
    };
    let user = user
        .into_iter()
        .map(|address| Frame::User(spaces.place(sample.pid, address)));
    stack.extend(user);
    // The last frame shows whether the stack is complete.
    if stack.len() >= MOST_FRAMES {
        stack.truncate(MOST_FRAMES - 1);
        stack.push(Frame::Broken);
    } else {
        stack.extend(end);
    }
    stack
}

/// Addresses of the calls: each return address less one. The first address is no return address and stays.
fn called(chain: &[u64]) -> impl Iterator<Item = u64> {
    let addresses = chain.iter().enumerate();
    addresses.map(|(at, address)| {
        if at == 0 {
            *address
        } else {
            address.wrapping_sub(1)
        }
    })
}
