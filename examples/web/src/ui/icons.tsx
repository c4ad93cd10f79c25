import type { ReactNode } from "react";

/** A drawing of 24 by 24 units. The control around it has the accessible name. */
function Icon({ children }: { children: ReactNode }) {
  return (
    <svg
      viewBox="0 0 24 24"
      width="20"
      height="20"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.8"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {children}
    </svg>
  );
}

export function SunIcon() {
  return (
    <Icon>
      <circle cx="12" cy="12" r="4" />
      <path d="M12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4" />
    </Icon>
  );
}

export function MoonIcon() {
  return (
    <Icon>
      <path d="M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z" />
    </Icon>
  );
}

export function SearchIcon() {
  return (
    <Icon>
      <circle cx="11" cy="11" r="6.5" />
      <path d="m16 16 4.5 4.5" />
    </Icon>
  );
}

export function CloseIcon() {
  return (
    <Icon>
      <path d="M6.5 6.5l11 11M17.5 6.5l-11 11" />
    </Icon>
  );
}

export function MoreIcon() {
  return (
    <Icon>
      <path d="M5 12h.01M12 12h.01M19 12h.01" strokeWidth="3" />
    </Icon>
  );
}

export function BellIcon() {
  return (
    <Icon>
      <path d="M6 17v-6a6 6 0 0 1 12 0v6l1.5 1.5h-15zM10 21h4" />
    </Icon>
  );
}

export function PersonIcon() {
  return (
    <Icon>
      <circle cx="12" cy="8" r="4" />
      <path d="M4.5 20.5c.8-4 3.5-6 7.5-6s6.7 2 7.5 6" />
    </Icon>
  );
}

export function AtIcon() {
  return (
    <Icon>
      <circle cx="12" cy="12" r="4" />
      <path d="M16 8v5.5a2.5 2.5 0 0 0 5 0V12a9 9 0 1 0-3.5 7" />
    </Icon>
  );
}

export function ArrowUpIcon() {
  return (
    <Icon>
      <path d="M12 19V5.5M6 11.5l6-6 6 6" />
    </Icon>
  );
}

export function ReplyIcon() {
  return (
    <Icon>
      <path d="M4 6.5A1.5 1.5 0 0 1 5.5 5h13A1.5 1.5 0 0 1 20 6.5v9a1.5 1.5 0 0 1-1.5 1.5H11l-4.5 3.5V17h-1A1.5 1.5 0 0 1 4 15.5z" />
    </Icon>
  );
}

export function HeartIcon() {
  return (
    <Icon>
      <path d="M12 19.5 4.9 12.6a4.6 4.6 0 0 1 0-6.6 4.7 4.7 0 0 1 6.6 0l.5.5.5-.5a4.7 4.7 0 0 1 6.6 0 4.6 4.6 0 0 1 0 6.6z" />
    </Icon>
  );
}

export function RepostIcon() {
  return (
    <Icon>
      <path d="M4 12.5V10a3 3 0 0 1 3-3h11.5M15.5 4l3 3-3 3M20 11.5V14a3 3 0 0 1-3 3H5.5M8.5 20l-3-3 3-3" />
    </Icon>
  );
}

export function QuoteIcon() {
  return (
    <Icon>
      <path d="M10 7c-3 .8-4.7 3-4.7 6v4h4.6v-4.6H7M19 7c-3 .8-4.7 3-4.7 6v4h4.6v-4.6H16" />
    </Icon>
  );
}

/** The mark of the app, as in `public/icon.svg`. */
export function Logo() {
  return (
    <svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
      <rect width="32" height="32" rx="9" fill="currentColor" />
      <path
        d="M9 22V10h14M9 16h10"
        fill="none"
        stroke="var(--accent-text)"
        strokeWidth="3"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  );
}
