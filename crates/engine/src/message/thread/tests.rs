use super::*;
use crate::ids::Ix;

fn list(thread: &Thread) -> Vec<usize> {
    thread.iter().map(Ix::get).collect()
}

fn of(messages: impl IntoIterator<Item = usize>) -> Thread {
    let mut thread = Thread::default();
    messages.into_iter().for_each(|message| thread.push(MessageIx::new(message)));
    thread
}

/// E-08: what is made of a thread leaves it as it was.
#[test]
fn threads_are_values() {
    let trunk = of(0..5);
    let (mut left, mut right) = (trunk.clone(), trunk.clone());
    left.push(MessageIx::new(10));
    right.push(MessageIx::new(20));
    assert_eq!(list(&trunk), [0, 1, 2, 3, 4]);
    assert_eq!(list(&left), [0, 1, 2, 3, 4, 10]);
    assert_eq!(list(&right), [0, 1, 2, 3, 4, 20]);
    assert_eq!((trunk.last(), left.last()), (Some(MessageIx(4)), Some(MessageIx(10))));
    assert_ne!(left, right);
    assert_eq!(left, of([0, 1, 2, 3, 4, 10]));
}

/// P-05: a slice of a thread is that of the list of its messages, also of a slice to which others were added.
#[test]
fn slices_are_those_of_lists() {
    let slice = |start: i64, end: i64| Slice(Some(start), Some(end));
    for len in 0..20_usize {
        let all: Vec<usize> = (0..len).collect();
        for start in -3..8 {
            for end in -3..25 {
                let (a, b) = slice(start, end).bounds(len);
                let mut part = of(0..len).slice(slice(start, end));
                assert_eq!(list(&part), all[a..b], "{len} [{start}, {end}]");
                assert_eq!((part.len(), part.is_empty()), (b - a, a == b));
                assert_eq!(part.is_cut(), b - a < len);
                let mut longer = all[a..b].to_vec();
                for message in [50, 51, 52] {
                    part.push(MessageIx::new(message));
                    longer.push(message);
                }
                assert_eq!(list(&part), longer);
                let (a, b) = slice(1, -1).bounds(longer.len());
                assert_eq!(list(&part.slice(slice(1, -1))), longer[a..b]);
            }
        }
    }
}

#[test]
fn one_thread_can_follow_another() {
    for (first, second) in [(0, 0), (0, 3), (3, 0), (3, 4)] {
        let mut thread = of(0..first);
        thread.extend(&of(10..10 + second));
        assert_eq!(list(&thread), (0..first).chain(10..10 + second).collect::<Vec<usize>>());
        assert!(!thread.is_cut());
    }
    let mut thread = Thread::default();
    thread.extend(&of(0..3).slice(Slice::LAST));
    assert!(thread.is_cut() && list(&thread) == [2]);
}

/// E-08: any part of a thread is near, and threads longer than a stack is deep come and go.
#[test]
fn long_threads_are_near_and_go() {
    const LEN: usize = 1_000_000;
    let thread = of(0..LEN);
    let mut at = thread.last.as_ref();
    let mut steps = 0;
    while let Some(link) = at {
        at = link.far.as_ref();
        steps += 1;
    }
    assert!(steps < 50, "{steps} steps to the first message");
    let middle = thread.slice(Slice(Some(LEN as i64 / 2), Some(LEN as i64 / 2 + 2)));
    assert_eq!(list(&middle), [LEN / 2, LEN / 2 + 1]);
    let (one, other) = (thread.clone(), thread.clone());
    let drops = [one, other].map(|thread| std::thread::spawn(move || drop(thread)));
    drop(thread);
    drops.into_iter().for_each(|dropped| dropped.join().unwrap());
    assert_eq!(list(&middle), [LEN / 2, LEN / 2 + 1]);
}
