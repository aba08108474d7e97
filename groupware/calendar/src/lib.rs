//! Events, invitations, notices, scheduling: pure decisions over a snapshot of the store.
