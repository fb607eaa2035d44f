//! How is a map of thousands kept as immutable snapshots, without a copy of all for a change of one?
//!
//! The map is cut into shards that snapshots share. A change copies the one shard that it touches:
//! with 5,000 entries that is about twenty, and a clone of the whole is a few hundred counters.

use std::{collections::BTreeMap, sync::Arc};

/// Doubled, a shard is half as big and a clone twice as dear.
const SHARDS: usize = 256;

/// A map whose clones share what they have in common. Iteration is in the keys' order.
#[derive(Clone, Debug)]
pub struct Sharded<K, V> {
    shards: Vec<Arc<BTreeMap<K, V>>>,
}

impl<K, V> Default for Sharded<K, V> {
    fn default() -> Self {
        let empty = Arc::new(BTreeMap::new());
        Self { shards: vec![empty; SHARDS] }
    }
}

impl<K: Ord + Clone + AsRef<str>, V: Clone> Sharded<K, V> {
    pub fn get(&self, key: &str) -> Option<&V>
    where
        K: std::borrow::Borrow<str>,
    {
        self.shards.get(shard_of(key))?.get(key)
    }

    pub fn insert(&mut self, key: K, value: V) {
        if let Some(shard) = self.shards.get_mut(shard_of(key.as_ref())) {
            Arc::make_mut(shard).insert(key, value);
        }
    }

    /// Changes the value of a key, made first where there is none.
    pub fn change(&mut self, key: K, change: impl FnOnce(&mut V))
    where
        V: Default,
    {
        if let Some(shard) = self.shards.get_mut(shard_of(key.as_ref())) {
            change(Arc::make_mut(shard).entry(key).or_default());
        }
    }

    pub fn remove(&mut self, key: &str) -> Option<V>
    where
        K: std::borrow::Borrow<str>,
    {
        let shard = self.shards.get_mut(shard_of(key))?;
        // Looked for first: a shard that stays the same stays shared.
        shard.contains_key(key).then(|| Arc::make_mut(shard).remove(key))?
    }

    /// Every entry, ordered by key.
    pub fn sorted(&self) -> Vec<(&K, &V)> {
        let mut all: Vec<(&K, &V)> = self.shards.iter().flat_map(|shard| shard.iter()).collect();
        all.sort_by_key(|(key, _)| *key);
        all
    }
}

/// FNV-1a: the same key is in the same shard in every run (Rule 2).
fn shard_of(key: &str) -> usize {
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // The last letters, in which ids differ, have reached the low half only; this brings them to
    // the top, where bits are mixed best.
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize % SHARDS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_leaves_older_snapshots_alone_and_shares_the_rest() {
        let mut first = Sharded::<String, u32>::default();
        for number in 0..1000 {
            first.insert(format!("i-{number}"), number);
        }
        let mut second = first.clone();
        second.insert("i-7".to_owned(), 70);
        assert_eq!(second.remove("i-8"), Some(8));
        assert_eq!(second.remove("unknown"), None);
        second.change("new".to_owned(), |value| *value += 5);
        assert_eq!((first.get("i-7"), second.get("i-7")), (Some(&7), Some(&70)));
        assert_eq!((first.get("i-8"), second.get("i-8")), (Some(&8), None));
        assert_eq!((first.get("new"), second.get("new")), (None, Some(&5)));
        let shared = first
            .shards
            .iter()
            .zip(&second.shards)
            .filter(|(left, right)| Arc::ptr_eq(left, right))
            .count();
        assert!(shared >= SHARDS - 3, "{shared} shards are shared");
    }

    #[test]
    fn entries_come_in_order_and_are_spread_evenly() {
        let mut map = Sharded::<String, ()>::default();
        for number in 0..5000 {
            map.insert(format!("i-{number:017x}"), ());
        }
        let keys: Vec<&String> = map.sorted().into_iter().map(|(key, ())| key).collect();
        assert!(keys.is_sorted());
        assert_eq!(keys.len(), 5000);
        let biggest = map.shards.iter().map(|shard| shard.len()).max().unwrap();
        assert!(biggest < 60, "{biggest} in one shard, about 20 on average");
    }
}
