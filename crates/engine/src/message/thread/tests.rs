use super::*;
use crate::ids::Ix;

fn list(thread: &Thread) -> Vec<usize> {
    thread.iter().map(Ix::get).collect()
}

fn entry(message: usize) -> Entry {
    Entry { message: MessageIx::new(message), bytes: message as u64, kind: Kind::Other }
}

fn of(messages: impl IntoIterator<Item = usize>) -> Thread {
    let mut thread = Thread::default();
    messages.into_iter().for_each(|message| thread.push(entry(message)));
    thread
}

/// E-08: what is made of a thread leaves it as it was.
#[test]
fn threads_are_values() {
    let trunk = of(0..5);
    let (mut left, mut right) = (trunk.clone(), trunk.clone());
    left.push(entry(10));
    right.push(entry(20));
    assert_eq!(list(&trunk), [0, 1, 2, 3, 4]);
    assert_eq!(list(&left), [0, 1, 2, 3, 4, 10]);
    assert_eq!(list(&right), [0, 1, 2, 3, 4, 20]);
    assert_eq!((trunk.last(), left.last()), (Some(MessageIx(4)), Some(MessageIx(10))));
    assert_ne!(left, right);
    assert_eq!(left, of([0, 1, 2, 3, 4, 10]));
}

/// What was added to a thread is found from its end, and of one that was edited, or is another, nobody knows it.
#[test]
fn what_stands_behind_an_earlier_thread_is_what_was_added_to_it() {
    let trunk = of(0..40);
    let mut longer = trunk.clone();
    (40..43).for_each(|message| longer.push(entry(message)));
    let behind = |thread: &Thread, earlier: &Thread| {
        thread.behind(earlier).map(|new| new.into_iter().map(Ix::get).collect::<Vec<_>>())
    };
    assert_eq!(behind(&longer, &trunk), Some(vec![40, 41, 42]));
    assert_eq!(behind(&trunk, &trunk), Some(vec![]));
    assert_eq!(behind(&trunk, &longer), None);
    assert_eq!(behind(&of(0..43), &trunk), None, "the same messages, but nobody knows that");
    let edited = longer.with(&[(5, 7, Some(entry(90)))]);
    assert_eq!((behind(&edited, &trunk), behind(&edited, &edited)), (None, Some(vec![])));
    assert_eq!(behind(&longer.slice(Slice(Some(1), None)), &trunk), None, "its beginning is another");
    assert_eq!(behind(&trunk, &Thread::default()), None);
}

/// E-09: who has a mark sees whether a thread, or its beginning, is still what it was.
#[test]
fn marks_stand_for_messages() {
    let trunk = of(0..40);
    let mark = |thread: &Thread, end: i64| thread.slice(Slice(None, Some(end))).mark();
    let mut longer = trunk.clone();
    longer.push(entry(40));
    assert_eq!((of(0..40).mark(), mark(&longer, 40)), (trunk.mark(), trunk.mark()));
    assert_eq!((Thread::default().mark(), mark(&trunk, 0)), (0, 0));
    // One in the place of another, of the same size, and others behind it.
    let edited = longer.with(&[(0, 1, Some(entry(90)))]);
    assert_eq!((edited.len(), edited.last()), (longer.len(), longer.last()));
    assert_eq!((1..=41).find(|end| mark(&edited, *end) == mark(&longer, *end)), None);
    let mut marks: Vec<u64> = (0..=41).map(|end| mark(&longer, end)).collect();
    marks.extend((1..40).map(|start| longer.slice(Slice(Some(start), None)).mark()));
    marks.extend([edited.mark(), of([1, 0]).mark(), longer.with(&[(3, 5, None)]).mark()]);
    let all = marks.len();
    marks.sort_unstable();
    marks.dedup();
    assert_eq!(marks.len(), all);
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
                assert_eq!(part.bytes(), all[a..b].iter().sum::<usize>() as u64, "{len} [{start}, {end}]");
                let mut longer = all[a..b].to_vec();
                for message in [50, 51, 52] {
                    part.push(entry(message));
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
        assert_eq!(thread.bytes(), thread.iter().map(|message| message.get() as u64).sum::<u64>());
        assert!(!thread.is_cut());
    }
    let mut thread = Thread::default();
    thread.extend(&of(0..3).slice(Slice::LAST));
    assert!(thread.is_cut() && list(&thread) == [2]);
}

/// E-28: large outputs are told until a model has answered, also in slices and behind another thread.
#[test]
fn large_outputs_are_new_until_a_reply() {
    let of_kind = |message: usize, kind: Kind| Entry { kind, ..entry(message) };
    let unanswered = |thread: &Thread| thread.unanswered().iter().map(|ix| ix.get()).collect::<Vec<_>>();
    let mut thread = of(0..3);
    assert!(unanswered(&thread).is_empty());
    for message in [3, 5] {
        thread.push(of_kind(message, Kind::Large));
        thread.push(entry(message + 1));
    }
    assert_eq!(unanswered(&thread), [3, 5]);
    assert_eq!(unanswered(&thread.slice(Slice(Some(4), None))), [5]);
    assert_eq!(unanswered(&thread.slice(Slice(None, Some(5)))), [3]);
    let mut other = of(20..22);
    other.extend(&thread);
    assert_eq!(unanswered(&other), [3, 5]);
    other.push(of_kind(30, Kind::Reply));
    assert!(unanswered(&other).is_empty());
    other.push(of_kind(31, Kind::Large));
    assert_eq!(unanswered(&other), [31]);
    let mut replied = of(40..41);
    replied.extend(&other);
    assert_eq!(unanswered(&replied), [31]);
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
