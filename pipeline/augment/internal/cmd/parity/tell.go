package main

import "encoding/json"

// tell answers with what was drawn for each sample, one JSON array of augment.Draw per line.
func tell(c *conversation) error {
	var s sample
	if err := c.request(&s); err != nil {
		return err
	}
	r, err := s.runner("")
	if err != nil {
		return err
	}
	out := json.NewEncoder(c.out)
	for range s.Count {
		draws, err := r.Draws(s.W, s.H, s.Sample)
		if err != nil {
			return err
		}
		if err := out.Encode(draws); err != nil {
			return err
		}
		s.Sample.Index++
	}
	return nil
}
