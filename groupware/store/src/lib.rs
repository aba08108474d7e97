//! Ordered transactional records with group commit, on SQLite or in memory.
