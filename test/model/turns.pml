/*
 * Commit, effects, anchor and lane (T1-T5, T7, LANE-1): one instance, two owners, two inbox messages and one task, one crash
 * and one pause, in every order. An append is two steps, sent and stored, so that a paused or dead owner's may be stored
 * when its successor is at work.
 *
 * The instance: its start (message 0) asks for a task, which goes by the lane while the start is kept unacknowledged as its
 * anchor, or by the queue; a signal (message 1) asks for nothing; the task's result asks for an answer to the outside. It is
 * over when all three facts are in its history and everything they asked for is out.
 *
 * Each guard is taken out with -DNO_<GUARD>; then Spin must find a run that breaks a law.
 */
#define NOBODY 2
#define START 0
#define SIGNAL 1
#define RESULT 2

/* history */
byte length;            /* commits */
bool has[3];            /* facts in it */
bool lastHas[3];        /* facts of the last commit */
bool lastAnchor;        /* the last commit is vouched for by the start */
/* inbox: 0 start, 1 signal, 2 result put there by the worker */
bool stored[3]; bool acked[3];
/* effects that are out */
bool taskQueued; bool answered;
byte workerHas;         /* 0 nothing, 1 by the lane, 2 by the queue, 3 done by the lane, 4 done and put into the inbox */
bool workerDead;
bool out[2];            /* an owner believes that the worker has the task by the lane */
/* leases */
byte holder = 0;
byte term;              /* grows with every take-over: an owner that comes back has begun anew */
bool dead[2];
bool othersCome;        /* another worker takes what is in the queue when the first is dead */
byte crashes = 1; byte pauses = 1; byte evictions = 1;
/* appends on their way */
bool sent[2]; byte expected[2]; byte fact[2]; bool sentAnchor[2];
byte outcome[2];        /* 0 none yet, 1 stored, 2 fenced */

#ifdef NO_ANCHOR
#define OUT(o) false
#else
#define OUT(o) ((workerHas == 1 || workerHas == 3) && out[o] && !SAW(o, RESULT))
#endif
#ifdef NO_INHERITED_ANCHOR
#define INHERITED(o) false
#else
#define INHERITED(o) (copyAnchor[o] && !ownCommit[o] && !SAW(o, RESULT))
#endif
/* an owner's copy of the history */
bool saw[3 * 2]; bool last[3 * 2]; bool copyAnchor[2];
#define SAW(o, f) saw[o * 3 + f]
#define LAST(o, f) last[o * 3 + f]
#define MINE(o) (holder == o && !dead[o] && mine == term)

inline storeAppend(o) {
  atomic {
    sent[o] = false;
#ifdef NO_FENCE
    if
    :: true ->
#else
    if
    :: expected[o] != length -> outcome[o] = 2
    :: expected[o] == length ->
#endif
       assert(expected[o] == length);           /* T1: a commit follows the one its maker knew */
       assert(!has[fact[o]]);                    /* T5, T7: a fact is recorded once */
       length++; has[fact[o]] = true;
       lastHas[START] = false; lastHas[SIGNAL] = false; lastHas[RESULT] = false;
       lastHas[fact[o]] = true; lastAnchor = sentAnchor[o]; outcome[o] = 1
    fi
  }
}

/* What the last commit asked for; everything may be sent twice. */
inline publishLast(o) {
  if
  :: LAST(o, START) && !SAW(o, RESULT) -> sendTask(o)
  :: else
  fi;
  if
  :: LAST(o, RESULT) -> answered = true
  :: else
  fi
}

/* What this owner's own commit asked for. */
inline publishMine(o) {
  if
  :: m == START -> sendTask(o)
  :: m == RESULT -> answered = true
  :: else
  fi
}

/* By the lane to the worker where it lives and has nothing, or by the queue. */
inline sendTask(o) {
  if
  :: workerHas == 1 && !workerDead -> out[o] = true                            /* sent before, or adopted */
  :: workerHas == 0 && !workerDead && MINE(o) && anchor[o] -> workerHas = 1; out[o] = true
  :: (workerHas == 0 || workerDead || workerHas == 3) -> taskQueued = true
  :: workerHas == 2 || workerHas == 4 -> skip
  fi
}

bool anchor[2];         /* keeps the start unacknowledged */
bool loaded[2]; byte known[2];
byte settled[2] = 255;  /* length of the history this owner has seen to; 255: knows nothing */
bool ownCommit[2];
bool delivered[3 * 2];

#define DELIVERED(o, m) delivered[o * 3 + m]

/* T7: what was stored before is handed out before. */
#ifdef NO_ORDER
#define NOT_BEFORE(o, m) true
#else
#define NOT_BEFORE(o, m) (acked[m] || DELIVERED(o, m))
#endif

inline load(o) {
  atomic {
    loaded[o] = true; known[o] = length;
    SAW(o, 0) = has[0]; SAW(o, 1) = has[1]; SAW(o, 2) = has[2];
    LAST(o, 0) = lastHas[0]; LAST(o, 1) = lastHas[1]; LAST(o, 2) = lastHas[2]; copyAnchor[o] = lastAnchor;
    owed = false;
#ifndef NO_OWED_AFTER_FENCE
    if
    :: settled[o] != 255 && settled[o] != length -> owed = true
    :: else
    fi;
#endif
    if
    :: settled[o] == 255 -> settled[o] = length
    :: else
    fi
  }
}

proctype Owner(byte o) {
  byte m; bool owed; bool byLane; bool vouched; byte mine = 0;
wait:
end:
  do
  :: dead[o] -> goto gone
  :: !dead[o] && mine != term -> goto lost
  /* an inbox message */
  :: atomic { MINE(o) && stored[0] && !acked[0] && !DELIVERED(o, 0) -> DELIVERED(o, 0) = true; m = 0; byLane = false; goto turn }
  :: atomic { MINE(o) && stored[1] && !acked[1] && !DELIVERED(o, 1) && NOT_BEFORE(o, 0) -> DELIVERED(o, 1) = true; m = 1; byLane = false; goto turn }
  :: atomic { MINE(o) && stored[2] && !acked[2] && !DELIVERED(o, 2) && NOT_BEFORE(o, 0) && NOT_BEFORE(o, 1) -> DELIVERED(o, 2) = true; m = 2; byLane = false; goto turn }
  /* a result by the lane: only where the anchor vouches for it */
  :: atomic { MINE(o) && workerHas == 3 && out[o] && !SAW(o, RESULT) && anchor[o] -> m = 2; byLane = true; goto turn }
  /* the worker died with the task: it goes by the queue */
  :: atomic { MINE(o) && workerDead && (workerHas == 1 || workerHas == 3) && out[o] ->
       workerHas = 0; taskQueued = true; out[o] = false; byLane = true; goto release }
#ifndef NO_LOOK_AGAIN
  /* the start that is kept as anchor comes again, to the owner that keeps it: it reads the history anew. Where nothing was
     appended meanwhile nothing comes of it. */
  :: atomic { MINE(o) && anchor[o] && loaded[o] && settled[o] != length ->
       loaded[o] = false; m = START; byLane = false; goto turn }
#endif
  /* the copy in memory is forgotten */
  :: atomic { evictions > 0 && loaded[o] && !anchor[o] ->
       evictions--; loaded[o] = false; settled[o] = 255; ownCommit[o] = false }
  od;
turn:
  if
  :: dead[o] -> goto gone
  :: !loaded[o] -> load(o)
  :: else -> owed = false
  fi;
again:
  atomic {
    if
    :: dead[o] -> goto gone
    :: else
    fi;
    if
#ifndef NO_APPLIED
    :: SAW(o, m) ->
       /* known: the effects of the commit it stands behind may not be out */
       if
       :: m == START -> anchor[o] = true
       :: else
       fi;
       vouched = (LAST(o, m) || (m == START && copyAnchor[o]));
#ifdef NO_OWED_AFTER_REDELIVERY
       vouched = false;
#endif
       if
       :: (vouched && !byLane) || owed -> publishLast(o)
       :: else
       fi;
#ifndef NO_LOOK_AFTER_LANE
       if
       :: m == START && !SAW(o, RESULT) -> sendTask(o)
       :: else
       fi;
#endif
       goto release
#endif
    :: else ->
       if
       :: owed -> publishLast(o)
       :: else
       fi;
       owed = false;
       /* the append is on its way */
       sent[o] = true; expected[o] = known[o]; fact[o] = m; outcome[o] = 0;
       sentAnchor[o] = (m == START || anchor[o])
    fi
  }
  /* stored at some time; whoever is paused here loses its lease meanwhile */
  if
  :: outcome[o] == 1 -> skip
  :: outcome[o] == 2 -> loaded[o] = false;
     if
     :: dead[o] -> goto gone
     :: mine != term -> goto lost
     :: else -> load(o); goto again
     fi
  :: dead[o] -> goto gone
  :: mine != term -> goto lost                    /* gives up waiting */
  fi;
  atomic {
    known[o] = expected[o] + 1; SAW(o, m) = true; ownCommit[o] = true; settled[o] = known[o];
    LAST(o, 0) = false; LAST(o, 1) = false; LAST(o, 2) = false; LAST(o, m) = true; copyAnchor[o] = sentAnchor[o];
    if
    :: m == START -> anchor[o] = true
    :: else
    fi
  }
  if
  :: dead[o] -> goto gone
  :: mine != term -> goto lost
  :: else -> publishMine(o)
  fi;
release:
  /* the acknowledgement of an owner whose consumer was made anew counts for nothing */
  atomic {
    if
    :: dead[o] -> goto gone
    :: mine != term -> goto lost
    :: else
    fi;
    if
    :: m != START && !byLane -> acked[m] = true
    :: else
    fi;
    /* the anchor stays while work is out on the lane, and while another owner may still append what it heard */
    if
    :: anchor[o] && !OUT(o) && !INHERITED(o) -> acked[START] = true; anchor[o] = false
    :: else
    fi
  }
  goto wait;
lost:
  atomic { mine = term; anchor[o] = false; out[o] = false; loaded[o] = false; settled[o] = 255; ownCommit[o] = false;
    DELIVERED(o, 0) = false; DELIVERED(o, 1) = false; DELIVERED(o, 2) = false; byLane = false }
  goto wait;
gone:
  skip
}

/* Stores what is on its way, also of owners that are dead or no longer hold the partition. */
proctype Server() {
  end: do
  :: sent[0] -> storeAppend(0)
  :: sent[1] -> storeAppend(1)
  od
}

proctype World() {
  end: do
  :: atomic { crashes > 0 && holder < NOBODY && !dead[holder] && !dead[1 - holder] -> crashes--; dead[holder] = true; holder = 1 - holder; term++ }
  :: atomic { crashes > 0 && !workerDead -> crashes--; workerDead = true;
       if
       :: workerHas == 2 -> workerHas = 0                /* the queue has it still */
       :: else
       fi }
  :: atomic { pauses > 0 && holder < NOBODY && !dead[1 - holder] -> pauses--; holder = 1 - holder; term++ }
  /* the worker, or another one in its place */
  :: atomic { workerHas == 1 && !workerDead -> workerHas = 3 }
  :: atomic { taskQueued && (workerHas == 0 || workerDead) && (othersCome || !workerDead) -> workerDead = false; workerHas = 2 }
  :: atomic { workerHas == 2 && !workerDead -> workerHas = 4; stored[2] = true }
  /* not told that it is recorded: it puts the result into the inbox */
  :: atomic { workerHas == 3 && !workerDead -> workerHas = 4; stored[2] = true }
  od
}

#define COMPLETE (has[START] && has[SIGNAL] && has[RESULT] && answered && acked[START] && acked[SIGNAL])
/* Nobody is there to run the task: all but what hangs on its result. */
#define WAITS (!othersCome && workerDead && !has[RESULT] && has[START] && has[SIGNAL] && acked[SIGNAL])

/* I17, T3: when nothing can happen any more, everything has happened. */
proctype Nothing() {
  end: do
  :: timeout -> assert(COMPLETE || WAITS); break
  od
}

init {
  atomic {
    stored[0] = true; stored[1] = true;
    if
    :: othersCome = true
    :: othersCome = false
    fi;
    run Owner(0); run Owner(1); run Server(); run World(); run Nothing()
  }
}
