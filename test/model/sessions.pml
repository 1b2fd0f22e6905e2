/*
 * Claim, lease, epoch, attachment and seat (S2, S5-S7, LEASE-3, LEASE-4, QUOTA-1): two workers, one watcher, two sessions of
 * a type of which one may be held at a time (one seat), one pause or crash of a worker, every claim delivered up to twice.
 *
 * A holder knows when its lease may end (`over`) before the server ends it: that is the margin. A lease of a worker that is
 * paused or dead runs out; the watcher tells the instance, which asks for the next attachment.
 *
 * Each guard is taken out with -DNO_<GUARD>; then Spin must find a run that breaks a law.
 */
#define SESSIONS 2
#define NONE 255
#define KEY(s, a) key[(s) * 3 + (a)]

/* leases: of each attachment 0 never there, 1 held, 2 expired, 3 given back */
byte key[6]; byte keyEpoch[6]; byte keyHolder[6];
byte epochs;                          /* the last that was given out */
byte seat = NONE; byte seatEpoch;     /* the session that sits there */
/* instances */
byte attachment[SESSIONS]; byte current[SESSIONS]; bool closed[SESSIONS]; bool answered[SESSIONS];
byte claims[6];                       /* copies of the claim that are still to be delivered */
bool told[6];                         /* the watcher has told of the end of this attachment */
/* workers: what each believes to hold */
byte holds[2 * SESSIONS]; bool over[2 * SESSIONS];
byte report[2 * SESSIONS]; byte ran[2 * SESSIONS];
bool asleep[2]; bool dead[2]; byte strikes = 1;

#define HOLDS(w, s) holds[(w) * SESSIONS + (s)]
#define OVER(w, s) over[(w) * SESSIONS + (s)]
#define RAN(w, s) ran[(w) * SESSIONS + (s)]
#define AWAKE(w) (!asleep[w] && !dead[w])
#define HELD(s) (KEY(s, 1) == 1 || KEY(s, 2) == 1)

#ifdef NO_CAS
#define FREE(s, a) true
#else
#ifdef NO_ONCE
#define FREE(s, a) (KEY(s, a) != 1)
#else
#define FREE(s, a) (KEY(s, a) == 0)
#endif
#endif
#ifdef NO_SEAT
#define SEATED(s) true
#else
#define SEATED(s) (seat == NONE || seat == s)
#endif
#ifdef NO_SELF_FENCE
#define GOOD(w, s) true
#else
#define GOOD(w, s) (!OVER(w, s))
#endif
#ifdef NO_EPOCH
#define CURRENT(s, e) true
#else
#define CURRENT(s, e) (current[s] == e)
#endif

/* The seat first, then the key, whose sequence is the epoch. */
inline take(w, s, a) {
  claims[s * 3 + a]--;
  if
  :: FREE(s, a) ->
     assert(KEY(s, a) != 1);                       /* LEASE-3: nobody takes what somebody has */
     assert(!HELD(1 - s));                         /* QUOTA-1 */
     assert(KEY(s, a) == 0);                       /* LEASE-4: what is over does not come back */
     epochs++; KEY(s, a) = 1; keyEpoch[s * 3 + a] = epochs; keyHolder[s * 3 + a] = w;
     seat = s; seatEpoch = epochs; HOLDS(w, s) = epochs; OVER(w, s) = false;
     if
     :: attachment[s] == a && !closed[s] -> current[s] = epochs
     :: else
     fi
  :: else                                          /* a copy of a claim that was taken */
  fi
}

/* Runs a call, under the right it believes to have; its report is on its way then. */
inline act(w, s) {
  assert(!HELD(s) || current[s] <= HOLDS(w, s));   /* S7: an old holder does not act beside a new one */
  report[(w) * SESSIONS + (s)] = HOLDS(w, s); ran[(w) * SESSIONS + (s)] = HOLDS(w, s)
}

inline accept(w, s) {
  if
  :: CURRENT(s, report[(w) * SESSIONS + (s)]) && !closed[s] ->
     assert(current[s] == report[(w) * SESSIONS + (s)]);   /* S6: no result of an old epoch counts */
     answered[s] = true; closed[s] = true
  :: else
  fi;
  report[(w) * SESSIONS + (s)] = 0
}

/* Gives the key back, then the seat. */
inline release(w, s) {
  if
  :: KEY(s, 1) == 1 && keyEpoch[s * 3 + 1] == HOLDS(w, s) -> KEY(s, 1) = 3
  :: KEY(s, 2) == 1 && keyEpoch[s * 3 + 2] == HOLDS(w, s) -> KEY(s, 2) = 3
  :: else
  fi;
  if
  :: seat == s && seatEpoch == HOLDS(w, s) -> seat = NONE
  :: else
  fi;
  HOLDS(w, s) = 0
}

proctype Worker(byte w) {
  end: do
  :: atomic { AWAKE(w) && claims[1] > 0 && HOLDS(w, 0) == 0 && SEATED(0) -> take(w, 0, 1) }
  :: atomic { AWAKE(w) && claims[2] > 0 && HOLDS(w, 0) == 0 && SEATED(0) -> take(w, 0, 2) }
  :: atomic { AWAKE(w) && claims[4] > 0 && HOLDS(w, 1) == 0 && SEATED(1) -> take(w, 1, 1) }
  :: atomic { AWAKE(w) && claims[5] > 0 && HOLDS(w, 1) == 0 && SEATED(1) -> take(w, 1, 2) }
  :: atomic { AWAKE(w) && HOLDS(w, 0) > 0 && GOOD(w, 0) && !closed[0] && RAN(w, 0) != HOLDS(w, 0) -> act(w, 0) }
  :: atomic { AWAKE(w) && HOLDS(w, 1) > 0 && GOOD(w, 1) && !closed[1] && RAN(w, 1) != HOLDS(w, 1) -> act(w, 1) }
  :: atomic { AWAKE(w) && HOLDS(w, 0) > 0 && (closed[0] || OVER(w, 0)) -> release(w, 0) }
  :: atomic { AWAKE(w) && HOLDS(w, 1) > 0 && (closed[1] || OVER(w, 1)) -> release(w, 1) }
  od
}

/* Ends leases that are not renewed: their holder sleeps or is dead, and knows it was over before, if it asks. */
proctype Server() {
  byte i;
  end: do
  :: atomic { (asleep[0] || dead[0]) && HOLDS(0, 0) > 0 && !OVER(0, 0) -> OVER(0, 0) = true }
  :: atomic { (asleep[0] || dead[0]) && HOLDS(0, 1) > 0 && !OVER(0, 1) -> OVER(0, 1) = true }
  :: atomic { (asleep[1] || dead[1]) && HOLDS(1, 0) > 0 && !OVER(1, 0) -> OVER(1, 0) = true }
  :: atomic { (asleep[1] || dead[1]) && HOLDS(1, 1) > 0 && !OVER(1, 1) -> OVER(1, 1) = true }
  :: atomic { KEY(0, 1) == 1 && over[keyHolder[1] * SESSIONS] && HOLDS(keyHolder[1], 0) == keyEpoch[1] -> KEY(0, 1) = 2 }
  :: atomic { KEY(0, 2) == 1 && over[keyHolder[2] * SESSIONS] && HOLDS(keyHolder[2], 0) == keyEpoch[2] -> KEY(0, 2) = 2 }
  :: atomic { KEY(1, 1) == 1 && over[keyHolder[4] * SESSIONS + 1] && HOLDS(keyHolder[4], 1) == keyEpoch[4] -> KEY(1, 1) = 2 }
  :: atomic { KEY(1, 2) == 1 && over[keyHolder[5] * SESSIONS + 1] && HOLDS(keyHolder[5], 1) == keyEpoch[5] -> KEY(1, 2) = 2 }
  od
}

/* Tells of leases that are over, and clears the seat of one that expired (QUOTA-2). The instance asks for the next one. */
proctype Watcher() {
  byte s; byte a;
  end: do
  :: atomic { KEY(0, 1) > 1 && !told[1] -> s = 0; a = 1; goto tell }
  :: atomic { KEY(0, 2) > 1 && !told[2] -> s = 0; a = 2; goto tell }
  :: atomic { KEY(1, 1) > 1 && !told[4] -> s = 1; a = 1; goto tell }
  :: atomic { KEY(1, 2) > 1 && !told[5] -> s = 1; a = 2; goto tell }
  od;
tell:
  atomic {
    told[s * 3 + a] = true;
    if
    :: seat == s && seatEpoch == keyEpoch[s * 3 + a] -> seat = NONE
    :: else
    fi;
    if
    :: attachment[s] == a && !closed[s] && a < 2 -> attachment[s] = a + 1; current[s] = 0; claims[s * 3 + a + 1] = 2
    :: else
    fi;
    goto end
  }
}

/* Reports arrive late, also from workers that are dead. */
proctype Instances() {
  end: do
  :: atomic { report[0] > 0 -> accept(0, 0) }
  :: atomic { report[1] > 0 -> accept(0, 1) }
  :: atomic { report[2] > 0 -> accept(1, 0) }
  :: atomic { report[3] > 0 -> accept(1, 1) }
  od
}

proctype World() {
  end: do
  :: atomic { strikes > 0 && !dead[1] -> strikes--; asleep[0] = true }
  :: atomic { strikes > 0 && !dead[1] -> strikes--; dead[0] = true }
  :: atomic { asleep[0] -> asleep[0] = false }
  od
}

/* I17: when nothing can happen any more, both sessions have answered. */
proctype Nothing() {
  end: do
  :: timeout -> assert(answered[0] && answered[1]); break
  od
}

init {
  atomic {
    attachment[0] = 1; attachment[1] = 1; claims[1] = 2; claims[4] = 2;
    run Worker(0); run Worker(1); run Server(); run Watcher(); run Instances(); run World(); run Nothing()
  }
}
