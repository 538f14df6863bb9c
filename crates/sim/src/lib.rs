//! Seeded simulator, reference models and the conformance runner (development only).
