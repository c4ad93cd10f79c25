import { useState } from "react";
import { graphql, useFragment } from "react-relay";
import type { Attachments_post$data, Attachments_post$key } from "./__generated__/Attachments_post.graphql";

type File = Attachments_post$data["attachments"][number];

const KNOWN = new Set(["ImageAttachment", "VideoAttachment"]);

/**
 * The pictures and videos of a post. Sensitive ones are not even loaded until the reader asks for them. Types of
 * attachments that this version does not know are left out.
 */
export function Attachments({ post }: { post: Attachments_post$key }) {
  const { attachments } = useFragment(
    graphql`
      fragment Attachments_post on Post {
        attachments {
          __typename
          url
          previewUrl
          width
          height
          alt
          sensitive
        }
      }
    `,
    post,
  );
  const files = attachments.filter((file) => KNOWN.has(file.__typename));
  if (files.length === 0) return null;
  return (
    <ul className={files.length > 1 ? "files files-several" : "files"} aria-label="Attachments">
      {files.map((file, place) => (
        <li key={place}>
          <Attachment file={file} />
        </li>
      ))}
    </ul>
  );
}

function Attachment({ file }: { file: File }) {
  const { __typename, url, previewUrl, alt, sensitive } = file;
  const [isShown, setIsShown] = useState(!sensitive);
  const size = { width: file.width ?? undefined, height: file.height ?? undefined };
  const isVideo = __typename === "VideoAttachment";
  if (!isShown) {
    return (
      <button className="sensitive" onClick={() => setIsShown(true)}>
        <strong>{isVideo ? "Sensitive video" : "Sensitive picture"}</strong>
        {alt && <span className="quiet">{alt}</span>}
        <span className="sensitive-show">Show</span>
      </button>
    );
  }
  if (isVideo) {
    return <video src={url} poster={previewUrl ?? undefined} {...size} controls preload="none" aria-label={alt || "Video"} />;
  }
  return (
    <a href={url} target="_blank" rel="noopener noreferrer" aria-label={alt ? undefined : "Picture without a description"}>
      <img src={previewUrl ?? url} alt={alt} {...size} loading="lazy" decoding="async" referrerPolicy="no-referrer" />
    </a>
  );
}
