use super::*;
use crate::message::{Entry, Kind, Role};

fn say(n: usize) -> Arc<Message> {
    Arc::new(Message::text(Role::User, format!("m{n}")))
}

fn texts<'a>(messages: impl IntoIterator<Item = &'a Arc<Message>>) -> Vec<String> {
    messages.into_iter().map(|message| message.content.to_string()).collect()
}

#[test]
fn every_message_is_where_its_index_says() {
    let mut log = Log::new();
    for n in 0..10_000 {
        let ix = log.push(say(n), None);
        assert_eq!(ix.get(), n);
    }
    for n in 0..10_000 {
        assert_eq!(*log[MessageIx::new(n)].content, *format!("m{n}"));
    }
    assert!(log.rows.get(MessageIx::new(10_000)).is_none());
    assert!(log.rows.get(MessageIx(u32::MAX)).is_none());
}

/// E-23: what is sent is the thread at the moment of the request, whatever is said afterwards.
#[test]
fn a_request_keeps_the_thread_of_its_moment() {
    let mut log = Log::new();
    let mut thread = Thread::default();
    for n in 0..20 {
        let ix = log.push(say(n), None);
        thread.push(Entry { message: ix, bytes: 0, kind: Kind::Other });
    }
    let messages = Messages::of(&log, Some(say(100)), &thread, vec![say(200)]);
    let later = log.push(say(20), None);
    thread.push(Entry { message: later, bytes: 0, kind: Kind::Other });
    assert_eq!(messages.len(), 22);
    assert!(!messages.is_empty());
    let mut wanted: Vec<String> = (0..20).map(|n| format!("m{n}")).collect();
    wanted.insert(0, "m100".into());
    wanted.push("m200".into());
    assert_eq!(texts(&messages), wanted);
    assert_eq!(texts(messages.clone().iter()), wanted);
    assert_eq!(messages.last().map(|last| last.content.to_string()), Some("m200".into()));
}

#[test]
fn a_list_is_a_list() {
    let messages = Messages::from(vec![say(1), say(2)]);
    assert_eq!((messages.len(), messages.is_empty()), (2, false));
    assert_eq!(texts(&messages), ["m1", "m2"]);
    assert!(Messages::default().is_empty());
    assert!(Messages::default().as_slice().is_empty());
}

/// Whatever their number is, both logs have them where they were, and each what is added to it.
#[test]
fn clones_share_what_is_full() {
    let mut log = Log::new();
    for n in 0..2_000 {
        let mut other = log.clone();
        let (by, theirs) = (Some(Arc::from("them")), other.push(say(7_000), Some("me".into())));
        assert_eq!(log.push(say(n), by.filter(|_| n % 3 == 0)), theirs);
        assert_eq!((&*other[theirs].content, other.by(theirs).map(|by| &**by)), ("m7000", Some("me")));
        if n % 97 == 0 {
            for at in 0..n {
                let ix = MessageIx::new(at);
                assert!(Arc::ptr_eq(&log[ix], &other[ix]));
                assert_eq!(*log[ix].content, *format!("m{at}"));
                assert_eq!(other.by(ix).is_some(), at % 3 == 0);
            }
        }
    }
}

/// E-08: a clone begins with the same messages, shared, and goes its own way.
#[test]
fn a_clone_is_a_log_of_its_own() {
    let message = |text: &str| Arc::new(Message::text(Role::User, text));
    let mut log = Log::new();
    for n in 0..20 {
        log.push(message(&n.to_string()), None);
    }
    let mut other = log.clone();
    let (mine, theirs) = (log.push(message("mine"), None), other.push(message("theirs"), None));
    assert_eq!(mine, theirs);
    assert_eq!((&*log[mine].content, &*other[theirs].content), ("mine", "theirs"));
    assert!(Arc::ptr_eq(&log[MessageIx(7)], &other[MessageIx(7)]));
}
