use super::*;

type Read = Result<u64, LoadError>;

fn entries(count: u64) -> impl Iterator<Item = Result<Entry, StoreError>> + Send {
    (1..=count).map(|n| Ok(Entry { n, at_ms: 7, json: String::new() }))
}

fn parse(entry: Entry) -> Read {
    Ok(entry.n)
}

fn numbers(records: &mut dyn Iterator<Item = Read>) -> Vec<u64> {
    records.map(|read| read.unwrap()).collect()
}

#[test]
fn every_record_comes_once_and_in_order() {
    for count in [0, 1, 1023, 1024, 1025, 2048, 50_000] {
        let read = ahead(entries(count), parse, numbers);
        assert_eq!(read, (1..=count).collect::<Vec<u64>>(), "{count}");
    }
}

#[test]
fn who_has_seen_enough_may_stop() {
    let read = ahead(entries(10_000_000), parse, |records| numbers(&mut records.take(1500)));
    assert_eq!(read.len(), 1500);
}

#[test]
fn an_error_comes_in_its_place() {
    for at in [3, 5000] {
        let entries = entries(at).chain([Err(StoreError::Closed)]);
        let last = ahead(entries, parse, |records| {
            let read: Vec<Read> = records.collect();
            assert_eq!(read.len() as u64, at + 1);
            read.into_iter().next_back().unwrap()
        });
        assert!(matches!(last, Err(LoadError::Store(StoreError::Closed))));
    }
}
