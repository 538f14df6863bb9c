//! Tests of the store's promises, through its public interface.

#[cfg(test)]
mod archive;
#[cfg(test)]
mod child;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod durability;
#[cfg(test)]
mod inbox;
#[cfg(test)]
mod index;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod library;
#[cfg(test)]
mod locks;
#[cfg(test)]
mod places;
#[cfg(test)]
mod proof;
#[cfg(test)]
mod speed;
#[cfg(test)]
mod support;
